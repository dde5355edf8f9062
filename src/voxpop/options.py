"""Options of methods: a default, a rule for what it may be, and a line of help, declared once as data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

from voxpop.errors import BadOption, unknown


@dataclass(frozen=True)
class Rule:
    """A test of a value, and the words for it."""

    test: Callable[[Any], bool]
    words: str


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def whole(low: int) -> Rule:
    return Rule(lambda v: _whole(v) and v >= low, f"a whole number of at least {low}")


def at_least(low: float) -> Rule:
    return Rule(lambda v: _number(v) and v >= low, f"a number of at least {low:g}")


def above(low: float) -> Rule:
    return Rule(lambda v: _number(v) and v > low, f"a number above {low:g}")


def fraction(high_included: bool = True) -> Rule:
    words = "a number from 0 to 1" if high_included else "a number from 0 to below 1"
    return Rule(lambda v: _number(v) and v >= 0 and (v <= 1 if high_included else v < 1), words)


def share() -> Rule:
    return Rule(lambda v: _number(v) and 0 < v <= 1, "a number above 0, at most 1")


def one_of(*names: str) -> Rule:
    return Rule(lambda v: v in names, "one of " + ", ".join(names))


def flag() -> Rule:
    return Rule(lambda v: isinstance(v, bool), "true or false")


def pair_above(low: float) -> Rule:
    return _pair(above(low), f"two numbers above {low:g}")


def pair_at_least(low: float) -> Rule:
    return _pair(at_least(low), f"two numbers of at least {low:g}")


def _pair(each: Rule, words: str) -> Rule:
    return Rule(lambda v: isinstance(v, tuple | list) and len(v) == 2 and all(map(each.test, v)), words)


def optional(rule: Rule) -> Rule:
    """Or nothing at all."""
    return Rule(lambda v: v is None or rule.test(v), f"{rule.words}, or none")


def anything() -> Rule:
    return Rule(lambda _: True, "anything")


def option(default: Any, rule: Rule, help: str) -> Any:
    """A dataclass field with a rule and a line of help."""
    return field(default=default, metadata={"rule": rule, "help": help})


@dataclass(frozen=True)
class WithOptions:
    """A frozen bag of options that checks them when it is made."""

    def __post_init__(self) -> None:
        check_options(self)

    def plain(self) -> dict[str, Any]:
        return plain(self)


def check_options(bag: Any) -> None:
    """Every option of a dataclass against its rule; all problems at once."""
    problems = []
    for spec in fields(bag):
        rule = spec.metadata.get("rule")
        value = getattr(bag, spec.name)
        if rule is not None and not rule.test(value):
            problems.append(f"{type(bag).__name__}: {spec.name} is {value!r}; it must be {rule.words}")
    if problems:
        raise BadOption(*problems)


def plain(bag: Any) -> dict[str, Any]:
    """Options as JSON can hold them; tensors and functions by their kind."""
    return {f.name: _plain(getattr(bag, f.name)) for f in fields(bag)}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    return f"<{type(value).__name__}>"


def option_names(kind: type[Any]) -> dict[str, Any]:
    """The options of a method by name, as dataclass fields."""
    return {f.name: f for f in fields(kind) if f.init}


def parse_option(kind: type[Any], name: str, text: str) -> Any:
    """The value of an option from its text, in the type of its default."""
    specs = option_names(kind)
    key = name.replace("-", "_")
    if key not in specs:
        raise unknown(f"option of {kind.__name__}", name, specs)
    spec = specs[key]
    value = parsed(text, spec.default)
    rule = spec.metadata.get("rule")
    if rule is not None and not rule.test(value):
        raise BadOption(f"{name}={text}: {name} must be {rule.words}")
    return value


def parsed(text: str, default: Any) -> Any:
    """A text as a value in the type of the default."""
    lowered = text.strip().lower()
    if lowered in ("none", "null"):
        return None
    if isinstance(default, bool):
        return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}.get(lowered, text)
    if isinstance(default, tuple) or "," in text:
        return tuple(_number_or_text(part) for part in text.strip("()[] ").split(","))
    if isinstance(default, str):
        return text
    return _number_or_text(text)


def _number_or_text(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text.strip()
