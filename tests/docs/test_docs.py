"""The pages are true: what they show runs, what they list is all there is, and where they point there is something."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import voxpop as vp
from tests.docs.pages import blocks, commands, run
from tests.docs.site import DOCS, PAGES, ROOT, prepared
from voxpop.cli.app import app
from voxpop.io import IMPORTERS
from voxpop.learn.learner import Learner
from voxpop.methods import default
from voxpop.methods.base import MeanFieldAscent
from voxpop.methods.learning.descent import Counted, Descent
from voxpop.methods.learning.targeted import Targeted
from voxpop.methods.registry import ENTRIES, LEARNING, Entry
from voxpop.options import option_names
from voxpop.priors import Uniform
from voxpop.simulate import ASSIGNMENTS, KINDS

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^(#+) +(.+?)\s*$", re.MULTILINE)
COMMANDS = get_command(app).commands  # type: ignore[attr-defined]
COMMON = option_names(MeanFieldAscent)
LEARNER = option_names(Learner)
TINY = vp.Votes.from_arrays([0, 0, 1], [0, 1, 0], [0, 1, 1])

named = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


@named
def test_page_runs(page: Path, tmp_path: Path) -> None:
    with prepared(tmp_path):
        run(page)


# -- links and words --------------------------------------------------------------------------


@named
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(prose(page)):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.is_file(), f"{page.name}: {link} leads to no file"
        if anchor:
            assert anchor in anchors(target), f"{page.name}: {link} leads to no heading"


def test_every_page_can_be_reached_from_the_readme() -> None:
    links = {(ROOT / link.partition("#")[0]).resolve() for link in LINK.findall(prose(ROOT / "README.md"))}
    assert not {page for page in PAGES if page.name != "README.md"} - links


@named
def test_page_names_no_host_and_no_machine(page: Path) -> None:
    assert not re.findall(r"https?://\S+|www\.\S+|/(?:home|root|work|tmp|usr)/\S*", page.read_text())


@named
def test_targets_of_make_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    asked = {
        c.text.split()[1] for b in blocks(page) if b.kind == "console" for c in commands(b) if "make" in c.text[:5]
    }
    assert asked <= targets


# -- lists that must be whole -----------------------------------------------------------------


def test_the_table_of_methods_in_the_readme_is_the_registry() -> None:
    rows = [row for row in table_rows(section(ROOT / "README.md", "Methods")) if row[0] != "in Python"]
    assert rows == [[f"`{e.python}`", f"`{e.name}`", e.summary, e.paper] for e in (*ENTRIES, *LEARNING)]


@pytest.mark.parametrize("entry", [*ENTRIES, *LEARNING], ids=lambda entry: entry.name)
def test_method_has_a_section(entry: Entry) -> None:
    text = section(DOCS / "methods.md", entry.python)
    first = " ".join(text.strip().partition("\n\n")[0].splitlines())
    assert f"`{entry.name}`" in first
    assert entry.paper in first
    assert entry.equations in first
    assert f"vp.{entry.python}(" in text, "it shows no example"
    assert "**Use it**" in text
    assert "**Not**" in text


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_options_of_a_method_are_listed_as_declared(entry: Entry) -> None:
    declared = option_names(entry.load())
    own = [o for o in declared.values() if o.name not in COMMON or o.default != COMMON[o.name].default]
    listed = [row for row in table_rows(section(DOCS / "methods.md", entry.python)) if row[0] != "option"]
    assert listed == [option_row(o) for o in own]


@pytest.mark.parametrize("entry", LEARNING, ids=lambda entry: entry.name)
def test_options_of_a_learner_are_listed_as_declared(entry: Entry) -> None:
    kind = entry.load()
    shared = option_names(next(base for base in (Counted, Descent, Targeted, Learner) if issubclass(kind, base)))
    own = [o for o in option_names(kind).values() if o.name not in shared or o.default != shared[o.name].default]
    listed = [row for row in table_rows(section(DOCS / "methods.md", entry.python)) if row[0] != "option"]
    assert listed == [option_row(o) for o in own]


def test_options_that_learners_share_are_listed_as_declared() -> None:
    rows = table_rows(section(DOCS / "methods.md", "Methods that learn"))
    own = {base: vars(base)["__annotations__"] for base in (Descent, Counted, Targeted)}
    extra = [option_names(base)[name] for base, names in own.items() for name in names]
    assert [row for row in rows if len(row) == 4 and row[0] != "option"] == [
        option_row(o) for o in (*LEARNER.values(), *extra)
    ]


def test_options_that_methods_share_are_listed_as_declared() -> None:
    listed = table_rows(section(DOCS / "methods.md", "Options that many share"))
    assert listed[1:] == [option_row(o) for o in COMMON.values()]


def test_the_candidates_of_the_default_are_listed() -> None:
    rows = table_rows(section(DOCS / "default.md", "The candidates"))[1:]
    found = default.candidates(TINY)
    assert [row[0] for row in rows] == [f"`{name}`" for name in found]
    assert [row[2] == "alike" for row in rows] == [
        method.model(TINY, None).prior == Uniform() for method in found.values()
    ]


def test_the_numbers_of_the_default_are_those_of_the_code() -> None:
    text = (DOCS / "default.md").read_text()
    for number in (default.FEW_VOTES, default.SWEEPS_OF_VOTES):
        assert f"{number:,}" in text
    assert f"less than {default.ENOUGH:.0%}" in text
    assert f"each getting {default.LEAST_SWEEPS} at least" in text
    assert f"R-hat at most {default.SETTLED}" in text
    listed = table_rows(section(DOCS / "default.md", "What it costs"))[1:]
    assert listed == [option_row(o) for o in option_names(default.Default).values()]


@pytest.mark.parametrize("name", COMMANDS)
def test_command_has_a_section_with_all_its_options(name: str) -> None:
    text = section(DOCS / "command-line.md", f"voxpop {name}")
    assert f"$ voxpop {name}" in text, "it shows no example"
    commands = [COMMANDS[name], *getattr(COMMANDS[name], "commands", {}).values()]
    options = [o for command in commands for parameter in command.params for o in parameter.opts if o.startswith("-")]
    assert not [o for o in options if not re.search(rf"`{o}\b", text) and o not in ("--help", "-h")]


def test_every_importer_is_described_and_shown() -> None:
    text = (DOCS / "formats.md").read_text()
    headings = {title.lower().replace(" ", "-") for _, title in HEADING.findall(text)} | {"crowd-kit", "judges"}
    assert not set(IMPORTERS) - headings
    assert "## A table, and crowd-kit" in text
    assert "## LLM judges" in text


def test_every_kind_of_crowd_is_listed_with_its_options() -> None:
    rows = {row[0]: row for row in table_rows(section(DOCS / "simulate.md", "Kinds"))[1:]}
    assert list(rows) == [f"`{name}`" for name in KINDS]
    for kind in KINDS.values():
        row = rows[f"`{kind.name}`"]
        assert row[1].startswith(kind.about.rstrip(".").removesuffix(")"))  # sizes may stand in the same brackets
        assert re.findall(r"`(\w+)=", row[2]) == list(kind.options)
    listed = table_rows(section(DOCS / "simulate.md", "Who votes on what"))[1:]
    assert [row[0] for row in listed] == [f'`"{name}"`' for name in ASSIGNMENTS]


def test_every_public_name_is_somewhere() -> None:
    text = "\n".join(page.read_text() for page in PAGES)
    assert not [name for name in vp.__all__ if name != "__version__" and not re.search(rf"\bvp\.{name}\b", text)]


@pytest.mark.parametrize("page", ["README.md", "CHANGELOG.md"])
def test_counts_in_words_are_right(page: str) -> None:
    ones = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    teens = (
        "ten",
        "eleven",
        "twelve",
        *(f"{ten}teen" for ten in ("thir", "four", "fif", "six", "seven", "eigh", "nine")),
    )
    tens = [f"{ten}{one}" for ten in ("twenty", "thirty", "forty") for one in ("", *(f"-{one}" for one in ones))]
    words = dict(enumerate([*teens, *tens], 10))
    text = (ROOT / page).read_text().lower().replace("[", "").replace("**", "")
    assert f"{words[len(ENTRIES)]} methods" in text
    assert f"{words[len(LEARNING)]} learners" in text
    assert f"{words[len(KINDS)]} kinds" in text


def test_every_plot_is_listed() -> None:
    own = {n for n, f in vars(vp.plots).items() if callable(f) and getattr(f, "__module__", "") == vp.plots.__name__}
    drawing = {name for name in own if "found" in getattr(vp.plots, name).__annotations__ and not name.startswith("_")}
    listed = re.findall(r"`vp\.plots\.(\w+)\(", section(DOCS / "results.md", "Plots"))
    assert set(listed) == drawing


def test_the_file_format_is_the_one_that_is_written(tmp_path: Path) -> None:
    from safetensors import safe_open

    votes = vp.read(DOCS / "data" / "votes.csv")
    described = " ".join(row[0] for row in table_rows(section(DOCS / "results.md", "Writing and reading back")))
    gold = {votes.tasks[0]: "cat"}
    for method in (vp.BayesGC(sweeps=10), vp.GibbsBCC(max_iter=20)):
        method.infer(votes, gold=gold).save(tmp_path / "one.vox")
        with safe_open(str(tmp_path / "one.vox"), framework="pt") as file:
            names = set(file.keys())
        assert not [n for n in names if f"`{n}`" not in described and not n.startswith("evidence.")]


# -- reading pages ----------------------------------------------------------------------------


def prose(page: Path) -> str:
    """A page without its code, be it fenced, indented or in a line."""
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`]*`", "``", re.sub(r"^ {4}.*$", "", text, flags=re.MULTILINE))


def anchors(page: Path) -> set[str]:
    """What a link to a place on the page may name."""
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    named = set(re.findall(r'<a id="([^"]+)">', text))
    for _, title in HEADING.findall(text):
        plain = re.sub(r"[^\w\- ]", "", title.lower())
        named.add(plain.replace(" ", "-"))
    return named


def section(page: Path, title: str) -> str:
    """The text under a heading, up to the next one of its rank."""
    text = page.read_text()
    found = [h for h in HEADING.finditer(text) if h[2] == title]
    assert found, f"{page.name} has no heading '{title}'"
    rank, rest = len(found[0][1]), text[found[0].end() :]
    return re.split(rf"^#{{1,{rank}}} ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def table_rows(text: str) -> list[list[str]]:
    """The cells of the tables in a text, without their rules."""
    lines = [line for line in text.splitlines() if line.startswith("|") and not re.fullmatch(r"[|\- :]+", line)]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def option_row(option: Any) -> list[str]:
    """How an option stands in a table."""
    return [f"`{option.name}`", as_text(option.default), option.metadata["rule"].words, option.metadata["help"]]


def as_text(value: Any) -> str:
    """A default as ``--set`` takes it."""
    if isinstance(value, list | tuple):
        return ",".join(map(as_text, value))
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)
