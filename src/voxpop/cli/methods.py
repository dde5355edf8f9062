"""voxpop methods: what there is to choose from, and what each can be told."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from voxpop.cli.choosing import DEFAULT, DEFAULT_SUMMARY, method_class
from voxpop.cli.show import as_option, console, plain, printing, show_json, show_table
from voxpop.methods.registry import LEARNERS, METHODS, find

AGGREGATE, LEARN = "aggregate", "learn"  # what a method is for


def _names(incomplete: str) -> list[str]:
    """For the shell's completion."""
    return [name for name in (DEFAULT, *METHODS, *LEARNERS) if name.startswith(incomplete)]


def methods(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="One method, to see its options.", autocompletion=_names),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on stdout, for machines.")] = False,
) -> None:
    """List the methods, or the options of one.

    Methods for 'aggregate' need votes alone; those for 'learn' train a classifier on features and votes.

    Example: voxpop methods dawid-skene
    """
    if name is None:
        facts = [_facts(known) for known in (DEFAULT, *METHODS, *LEARNERS)]
        show = _show_list
    else:
        facts = [_facts(name) | {"options": _options(name)}]
        show = _show_one
    with printing():
        if as_json:
            show_json(facts if name is None else facts[0])
        else:
            show(facts)


def _facts(name: str) -> dict[str, Any]:
    """What is known of a method without importing it."""
    if name == DEFAULT:
        return {
            "name": DEFAULT,
            "for": AGGREGATE,
            "python": "consensus",
            "summary": DEFAULT_SUMMARY,
            "paper": "Yao et al. 2018 (stacking)",
            "equations": "",
        }
    entry = find(name)
    return {
        "name": entry.name,
        "for": LEARN if entry.name in LEARNERS else AGGREGATE,
        "python": entry.python,
        "summary": entry.summary,
        "paper": entry.paper,
        "equations": entry.equations,
    }


def _options(name: str) -> list[dict[str, Any]]:
    from voxpop.options import option_names

    kind = find(name).load() if name in LEARNERS else method_class(name)
    return [
        {
            "name": option,
            "default": plain(spec.default),
            "rule": spec.metadata["rule"].words,
            "help": spec.metadata["help"],
        }
        for option, spec in option_names(kind).items()
    ]


def _show_list(facts: list[dict[str, Any]]) -> None:
    out = console()
    rows = [(f["name"], f["for"], f["summary"], f["paper"]) for f in facts]
    show_table(out, ("method", "for", "what it does", "paper"), rows)
    out.print(f"'voxpop aggregate' without -m uses '{DEFAULT}'. 'voxpop methods NAME' shows the options of one.")


def _show_one(facts: list[dict[str, Any]]) -> None:
    out, (method,) = console(), facts
    equations = f", eq. {method['equations']}" if method["equations"] else ""
    out.print(f"{method['name']} (in Python: voxpop.{method['python']}): {method['summary']}")
    out.print(f"paper: {method['paper']}{equations}")
    options = method["options"]
    if not options:
        out.print("It has no options.")
        return
    rows = [(o["name"], as_option(o["default"]), o["rule"], o["help"]) for o in options]
    show_table(out, ("option", "default", "may be", "what it is"), rows)
    verb = "aggregate votes.csv" if method["for"] == AGGREGATE else "learn votes.csv --features x.npz"
    example = f"--set {options[0]['name']}={as_option(options[0]['default'])}"
    out.print(f"Example: voxpop {verb} -m {method['name']} {example}")
