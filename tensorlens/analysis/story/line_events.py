"""Defines the phrases of the story: what one run of a line did to one tensor, or to many."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

MANY = 3


@dataclass(frozen=True, slots=True)
class LineEvent:
    """One thing that a line did to the tensor `name`, in the storage with the mark `storage`. Both may be empty."""

    name: str
    text: str
    storage: str = ""
    kind: Literal["plain", "error", "warning", "passing"] = "plain"  # passing: shown if the line did nothing else
    more: tuple[str, ...] = ()  # what follows from it: `out changes too`


def folded(events: Iterable[LineEvent]) -> list[LineEvent]:
    """Merges events that say the same about different tensors, if there are many."""
    groups: dict[tuple[str, tuple[str, ...]], list[LineEvent]] = {}
    for event in events:
        groups.setdefault((event.text, event.more), []).append(event)
    result: list[LineEvent] = []
    for (text, _), group in groups.items():
        gradients = all(event.name.endswith(".grad") for event in group)
        subject = f".grad of {len(group)} tensors" if gradients else f"{len(group)} tensors"
        result += group if len(group) <= MANY else [LineEvent("", f"{subject}: {text}")]
    return result


def count_text(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
