"""Compares what two runs used: the gradients of each step of each optimizer, or of each backward pass without one."""

from __future__ import annotations

import re
from collections import defaultdict
from operator import itemgetter
from typing import Any

import torch

Record = dict[str, Any]  # see `recorder.Record`
_RELATIVE = {torch.float64: 1e-6, torch.complex128: 1e-6, torch.float16: 3e-2, torch.bfloat16: 6e-2}
_FLOOR = 1e-5  # of the largest gradient of a step: a smaller one, as of a bias before batch norm, is rounding


def difference(found: Record, right: Record) -> str | None:
    """Says how the gradients that a run used differ from the right ones, or returns None."""
    if right["steps"]:
        text = _steps_differ(_by_optimizer(found), _by_optimizer(right))
    else:
        text = _passes_differ(found["passes"], right["passes"])
    return text or _results_differ(found["returned"], right["returned"]) or _left_differs(found["left"], right)


def _left_differs(found: list[torch.Tensor], right: Record) -> str | None:
    """Compares the values that parameters and buffers have at the end: a write may have been dropped.

    A parameter whose gradients are only rounding is left out: Adam makes whole steps of them, in any direction.
    """
    for tensor, place in zip(right["left"], right["trained"], strict=True):
        if not _moves_by_rounding(right, place) and not any(_equal(tensor, other) for other in found):
            return "a parameter or buffer has another value at the end"
    return None


def _moves_by_rounding(record: Record, place: tuple[int, int] | None) -> bool:
    """Returns whether each gradient that a parameter got is tiny beside the largest of its step, and not all are 0."""
    steps = [gradients for optimizer, gradients in record["steps"] if place is not None and optimizer == place[0]]
    sizes = [[0.0 if each is None else float(each.norm()) for each in gradients] for gradients in steps]
    own = [(row[place[1]], max(row)) for row in sizes if place is not None and place[1] < len(row)]
    return any(size > 0 for size, _ in own) and all(size <= _FLOOR * largest for size, largest in own)


def as_many(found: Record, right: Record) -> bool:
    """Returns whether two runs made as many backward passes, and as many steps of each optimizer."""
    steps = [[optimizer for optimizer, _ in sorted(run["steps"], key=itemgetter(0))] for run in (found, right)]
    return steps[0] == steps[1] and len(found["passes"]) == len(right["passes"])


def used(record: Record) -> bool:
    """Returns whether a run used any gradient."""
    return bool(record["steps"] or record["passes"])


def _by_optimizer(record: Record) -> dict[int, list[list[torch.Tensor | None]]]:
    steps: dict[int, list[list[torch.Tensor | None]]] = defaultdict(list)
    for optimizer, gradients in record["steps"]:
        steps[optimizer].append(gradients)
    return steps


def _steps_differ(
    found: dict[int, list[list[torch.Tensor | None]]], right: dict[int, list[list[torch.Tensor | None]]]
) -> str | None:
    counts = [{optimizer: len(steps) for optimizer, steps in sorted(run.items())} for run in (found, right)]
    if counts[0] != counts[1]:
        return f"{_counted(counts[0])}, not {_counted(counts[1])}"
    for optimizer, steps in sorted(right.items()):
        for number, (ours, theirs) in enumerate(zip(found[optimizer], steps, strict=True), start=1):
            if (text := _lists_differ(ours, theirs)) is not None:
                return f"optimizer {optimizer + 1}, step {number}: {text}"
    return None


def _counted(steps: dict[int, int]) -> str:
    return "+".join(str(number) for number in steps.values()) + " steps" if steps else "no step"


def _lists_differ(found: list[torch.Tensor | None], right: list[torch.Tensor | None]) -> str | None:
    if len(found) != len(right):
        return f"{len(found)} parameters, not {len(right)}"
    missing = sum(a is None and b is not None for a, b in zip(found, right, strict=True))
    if missing:
        return f"{missing} of {len(right)} gradients are None"
    if sum(a is not None and b is None for a, b in zip(found, right, strict=True)):
        return "gradients where there are to be none"
    pairs = [(a, b) for a, b in zip(found, right, strict=True) if a is not None and b is not None]
    largest = max((float(b.norm()) for _, b in pairs), default=0.0)
    worst = max((_distance(a, b, largest) for a, b in pairs), default=0.0)
    return f"gradients off by {100 * worst:.2g} %" if worst > 0 else None


def _distance(found: torch.Tensor, right: torch.Tensor, largest: float) -> float:
    """Returns how far a gradient is from the right one, relative to it; 0 if it is as near as rounding allows."""
    if found.shape != right.shape:
        return float("inf")
    if not torch.equal(torch.isnan(found), torch.isnan(right)):
        return float("inf")
    wide = torch.complex128 if right.is_complex() else torch.float64
    a, b = found.to(wide).nan_to_num(), right.to(wide).nan_to_num()
    apart, size = float((a - b).norm()), float(b.norm())
    if apart <= _RELATIVE.get(right.dtype, 1e-3) * size + _FLOOR * largest:
        return 0.0
    return apart / size if size else float("inf")


Pass = list[tuple[torch.Tensor, torch.Tensor | None]]


def _passes_differ(found: list[Pass], right: list[Pass]) -> str | None:
    if len(found) != len(right):
        return f"{len(found)} backward passes, not {len(right)}"
    for number, (ours, theirs) in enumerate(zip(found, right, strict=True), start=1):
        for value, gradient in theirs:
            if not any(_equal(value, v) and _equal(gradient, g) for v, g in ours):
                return f"backward {number}: a gradient, or the value that it belongs to, differs"
    return None


def _equal(right: torch.Tensor | None, found: torch.Tensor | None) -> bool:
    if right is None or found is None:
        return right is found
    return right.shape == found.shape and _distance(found, right, 0.0) == 0


def _results_differ(found: dict[str, list[Any]], right: dict[str, list[Any]]) -> str | None:
    for name, calls in right.items():
        ours = found.get(name, [])
        same = len(ours) == len(calls) and all(
            len(a) == len(b) and all(_equal(y, x) for x, y in zip(a, b, strict=True))
            for a, b in zip(ours, calls, strict=True)
        )
        if not same:
            return f"`{name}()` returns other values"
    return None


_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|nan|inf")


def prints_differ(found: str, right: str) -> bool:
    """Returns whether two runs printed different numbers."""
    ours, theirs = ([float(number) for number in _NUMBER.findall(text)] for text in (found, right))
    return len(ours) != len(theirs) or any(abs(a - b) > 1e-3 * (1 + abs(b)) for a, b in zip(ours, theirs, strict=True))
