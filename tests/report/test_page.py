"""The report as a reader meets it: one file, everything in it, nothing that breaks it."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import polars as pl
import pytest
import torch

from voxpop.errors import BadInput
from voxpop.methods.dawid_skene import DawidSkene
from voxpop.methods.majority import MajorityVote
from voxpop.report import html_page, html_report
from voxpop.results import Consensus
from voxpop.simulate import Simulated, simulate
from voxpop.votes import Votes

VOID = {"meta", "img", "br", "link", "input", "hr"}


class Page(HTMLParser):
    """Every element and all text; fails on an element that is not closed, or closed by another."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.text.append(data)

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def votes_of(*rows: tuple[str, str, str], **axes: list[str]) -> Votes:
    return Votes.from_frame(pl.DataFrame(list(rows), schema=["task", "worker", "label"], orient="row"), **axes)


@pytest.fixture(scope="module")
def crowd() -> Simulated:
    return simulate(300, 20, 3, "spammers", seed=3, votes_per_task=5)


@pytest.fixture(scope="module")
def found(crowd: Simulated) -> Consensus:
    return DawidSkene().infer(crowd.votes)


@pytest.fixture(scope="module")
def html(found: Consensus, crowd: Simulated) -> str:
    return html_page(found, crowd.truth_frame())


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return Page(html)


# -- one file -----------------------------------------------------------------------------------


def test_the_page_needs_nothing_from_outside(html: str, page: Page):
    addresses = [
        value for _, attributes in page.elements for name, value in attributes.items() if name.endswith(("src", "href"))
    ]
    assert len(addresses) > 5
    assert all(str(address).startswith(("#", "data:image/png;base64,")) for address in addresses)
    assert "://" not in html
    assert "@import" not in html
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", html))
    assert not page.of("script")
    assert not page.of("link")


def test_every_reference_within_the_page_has_its_target(page: Page, html: str):
    ids = {str(attributes["id"]) for _, attributes in page.elements if "id" in attributes}
    links = {
        str(value)[1:]
        for _, attributes in page.elements
        for name, value in attributes.items()
        if name.endswith("href") and str(value).startswith("#")
    }
    assert links | set(re.findall(r"url\(#([^)]*)\)", html)) <= ids


def test_colours_of_figures_follow_the_page(page: Page):
    drawn = [str(attributes.get("style", "")) for _, attributes in page.elements if _ in ("path", "use", "text")]
    assert any("var(--accent)" in style for style in drawn)
    assert not [style for style in drawn if re.search(r"#[0-9a-f]{6}", style)]


def test_the_same_consensus_gives_the_same_page(found: Consensus, crowd: Simulated, html: str):
    assert html_page(found, crowd.truth_frame()) == html


def test_the_file_holds_the_page(found: Consensus, tmp_path, html: str, crowd: Simulated):
    html_report(found, tmp_path / "report.html", crowd.truth_frame())
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == html
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_a_place_that_cannot_be_written_is_bad_input(found: Consensus, tmp_path):
    with pytest.raises(BadInput, match="no directory"):
        html_report(found, tmp_path / "nowhere" / "report.html")


# -- what is in it ------------------------------------------------------------------------------


def test_the_headline_says_how_much_was_found(page: Page, found: Consensus):
    assert "20 workers gave 1,500 votes on 300 tasks, 5.0 a task" in page.words
    assert "dawid-skene (a confusion matrix per worker, by EM): converged" in page.words
    assert f"mean confidence {float(found.certainty.double().mean()):.1%}" in page.words
    expected = float((1 - found.certainty.double()).sum())
    assert f"wrong labels to expect {expected:.{0 if expected >= 10 else 1}f}" in page.words
    assert f"workers better than chance {(found.workers['better_than_chance'] == 'yes').sum()} of 20" in page.words


def test_the_most_doubtful_tasks_are_listed_with_their_votes(page: Page, found: Consensus):
    doubtful = found.doubtful(20)["task"].to_list()
    section = page.words[page.words.index("The most doubtful tasks") : page.words.index("Who says what")]
    assert [task for task in doubtful if f" {task} " not in section] == []
    explained = found.explain(doubtful[0])
    cards = page.words[page.words.index("Who says what") : page.words.index("Reliability against activity")]
    for worker, label in explained.select("worker", "vote").head(-1).iter_rows():
        assert f" {worker} {label} " in cards


def test_all_workers_of_a_small_crowd_are_shown_the_worst_first(page: Page, found: Consensus):
    section = page.words[page.words.index("better than chance?") : page.words.index("What they take for what")]
    assert section.count("● yes") + section.count("◆ not shown") + section.count("✕ worse") == 20
    flagged = found.workers.filter(pl.col("better_than_chance") != "yes")
    assert len(flagged) > 0
    assert section.rindex("◆ not shown") < section.index("● yes")


def test_with_a_truth_the_methods_are_measured(page: Page, found: Consensus, crowd: Simulated):
    scores = found.evaluate(crowd.truth_frame())
    section = page.words[page.words.index("Measured on 300 tasks") : page.words.index("How sure Of")]
    assert f"{scores['accuracy']:.1%}" in section
    assert f"{scores['f1']:.1%}" in section
    assert "majority-vote" in section
    assert "Is the confidence honest?" in section


def test_the_gain_over_the_majority_is_counted(found: Consensus, crowd: Simulated, page: Page):
    majority = MajorityVote().infer(crowd.votes)
    ours, theirs = found.label == crowd.truth, majority.label == crowd.truth
    righted, spoiled = int((ours & ~theirs).sum()), int((theirs & ~ours).sum())
    assert righted > 0
    assert f"dawid-skene set {righted} label" in page.words
    assert f"{spoiled} label" in page.words


def test_without_a_truth_nothing_is_claimed_about_it(found: Consensus, crowd: Simulated):
    words = Page(html_page(found)).words
    majority = MajorityVote().infer(crowd.votes)
    differ = int((majority.label != found.label).sum())
    assert f"majority-vote {differ} ({differ / 300:.1%})" in words
    assert "accuracy is the share" not in words.lower()
    assert "truth" not in words[words.index("The most doubtful tasks") : words.index("Who says what")]


def test_other_methods_stand_beside(found: Consensus, crowd: Simulated):
    from voxpop.methods.mace import MACE

    words = Page(html_page(found, crowd.truth_frame(), [MACE().infer(crowd.votes)])).words
    section = words[words.index("Measured on") : words.index("How sure Of")]
    assert all(name in section for name in ("mace", "majority-vote", "dawid-skene"))


def test_the_majority_is_not_put_beside_itself(crowd: Simulated):
    words = Page(html_page(MajorityVote().infer(crowd.votes), crowd.truth_frame())).words
    assert "Of the majority" not in words
    assert words[words.index("Measured on") : words.index("Is the confidence")].count("majority-vote") == 1


def test_a_title_and_pictures_can_be_given(found: Consensus):
    asked = []

    def picture(task: int) -> bytes:
        asked.append(task)
        return b"\x89PNG"

    page = Page(html_page(found, title="Birds & bees", picture=picture))
    assert "Birds & bees" in page.words
    assert [image["src"] for image in page.of("img")] == ["data:image/png;base64,iVBORw=="] * len(asked)
    assert len(asked) == 6


def test_votes_left_out_and_tasks_without_votes_are_counted():
    frame = pl.DataFrame({"task": ["a", "a", "b"], "worker": ["x", "y", "x"], "label": ["1", "2", "?"]})
    votes = Votes.from_frame(frame, tasks=["a", "b"], ignore=["?"])
    words = Page(html_page(MajorityVote().infer(votes))).words
    assert "1 vote was left out: ignored" in words
    assert "1 task has no votes" in words
    assert "2 tasks are ties" in words


# -- names --------------------------------------------------------------------------------------

NASTY = ["<script>alert(1)</script>", "\"'><img src=x onerror=y>", "$\\frac{1$", "$x$", "{{ 7 * 7 }}", "語 %s {0}"]


@pytest.mark.parametrize("name", NASTY)
def test_names_are_shown_as_they_are(name: str):
    rows = [(task, worker, label) for task in (name, "t") for worker in (name, "w", "v") for label in (name,)]
    votes = votes_of(*rows, ("t", "u", "other"), ("s", "u", name), ("s", name, "other"))
    page = Page(html_page(DawidSkene().infer(votes), title=name, truth={"t": name}))
    assert not page.of("script")
    assert not page.of("img")
    assert page.words.count(name) > 8
    assert "49" not in page.words.replace("0.49", "")


def test_long_names_do_not_break_the_figures():
    long = "a worker with a name that never ends " * 10
    votes = votes_of(("t", long, "x"), ("t", "w", "y"), ("u", long, "x"), ("u", "w", "x"))
    page = Page(html_page(DawidSkene().infer(votes)))
    assert "a worker with a n…" in page.words
    assert long.strip() in page.words


# -- extremes -----------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::voxpop.errors.DataWarning")
@pytest.mark.parametrize("method", [MajorityVote(), DawidSkene()], ids=lambda method: method.name)
@pytest.mark.parametrize(
    "votes",
    [
        votes_of(("t", "w", "x")),
        votes_of(("t", "w", "x"), tasks=["t", "silent"], workers=["w", "away"], classes=["x", "y"]),
        votes_of(("t", "w", "x"), ("t", "v", "x"), ("u", "v", "x")),
        votes_of(tasks=["t"], workers=["w"], classes=["x", "y"]),
        votes_of(("t", "w", "x"), ("t", "w", "y"), ("t", "w", "y")),
    ],
    ids=["one vote", "silent axes", "one class", "no votes", "repeats"],
)
def test_tiny_data_has_a_page(votes: Votes, method: MajorityVote | DawidSkene):
    found = method.infer(votes)
    plain, measured = html_page(found), html_page(found, truth={"t": "x"})
    assert f"on {votes.N} task" in Page(plain).words
    assert "of the 1 label that can be checked" in Page(measured).words
    assert "nan" not in re.sub(r"<style.*?</style>", "", plain + measured, flags=re.DOTALL)


def test_large_axes_stay_small():
    rng = torch.Generator().manual_seed(0)
    N, M, K, V = 30_000, 4_000, 300, 100_000
    task, worker = torch.randint(N, (V,), generator=rng), torch.randint(M, (V,), generator=rng)
    label = torch.where(torch.rand(V, generator=rng) < 0.7, task % K, torch.randint(K, (V,), generator=rng))
    votes = Votes.from_arrays(task, worker, label, tasks=range(N), workers=range(M), classes=range(K))
    found = MajorityVote().infer(votes)
    assert found.table is None  # 4,000 x 300 x 300 would not fit
    html = html_page(found, dict(enumerate((torch.arange(N) % K).tolist())))
    page = Page(html)
    assert len(html) < 500_000
    assert len(page.of("tr")) < 150
    assert "40 of 4,000 workers" in page.words
    assert "3,960 are not shown" in page.words
    assert "There are no confusion matrices" in page.words
