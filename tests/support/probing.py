"""Comparisons measured in the tests' own process: the same code as in the child, without a start per comparison."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from tensorlens.compare import Comparison, ProbeOptions, comparison_of
from tensorlens.compare.probe_process import Measured


def probe(*texts: str, **options: Any) -> Comparison:
    """As `compare(texts, ProbeOptions(**options))`, on a small size where costs are not what is tested."""
    from tensorlens.compare.probe.__main__ import answer

    settings = asdict(ProbeOptions(**{"size": 100, **options}))
    del settings["timeout"]
    measured = Measured()
    answer({"texts": list(texts), "options": settings}, lambda line: measured.take(json.loads(json.dumps(line))))
    return comparison_of(measured, texts)


def values(comparison: Comparison, name: str) -> tuple[Any, ...]:
    """The values of one row on the main input."""
    row = comparison.row(name)
    assert row is not None, name
    return row.values


def by_input(comparison: Comparison, name: str, operand: int) -> dict[str, Any]:
    """Input id -> value, for one probe and operand."""
    row = comparison.row(name)
    assert row is not None, name
    return {comparison.inputs[place].id: answer.value for place, answer in row.answers(operand).items()}
