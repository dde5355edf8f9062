"""What a cell of an export says, as text."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

from voxpop.errors import BadInput

NOT_A_NUMBER = ("NaN", "nan")  # how programs spell a missing label


def as_label(value: Any) -> str | None:
    """One answer as text, None where there is none. Several answers at once are one label: a sorted JSON list."""
    if value is None or value == "" or value == [] or value == {}:
        return None
    if isinstance(value, str):
        return None if value in NOT_A_NUMBER else value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return None if math.isnan(value) else str(int(value)) if value.is_integer() else repr(value)
    if isinstance(value, list) and not any(isinstance(v, list | dict) for v in value):
        return several(filter(None, map(as_label, value)))
    return as_json(value) if isinstance(value, list | dict) else str(value)


def as_json(value: Any) -> str:
    """A nested value as text that does not depend on the order of its keys."""
    try:
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    except RecursionError:
        raise BadInput("an answer is nested too deeply; this is not an export of votes") from None


def several(labels: Iterable[str]) -> str | None:
    """A set of labels as one label, whatever their order."""
    distinct = sorted(set(labels))
    if len(distinct) > 1:
        return as_json(distinct)
    return distinct[0] if distinct else None


def as_name(value: Any) -> str | None:
    """A task or worker as text, None where there is none."""
    return (value or None) if isinstance(value, str) else as_label(value)
