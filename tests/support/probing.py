"""Measures comparisons in the tests' own process, with the code of the probing child."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from tensorlens.compare import Comparison, ProbeOptions, comparison_of
from tensorlens.compare.probe_process import Measured


def probe(*texts: str, **options: Any) -> Comparison:
    """Runs `compare(texts, ProbeOptions(**options))`, with a small size unless costs are tested."""
    from tensorlens.compare.probe.__main__ import answer

    settings = asdict(ProbeOptions(**{"size": 100, **options}))
    del settings["timeout"]
    measured = Measured()
    answer({"texts": list(texts), "options": settings}, lambda line: measured.add(json.loads(json.dumps(line))))
    return comparison_of(measured, texts)


def values(comparison: Comparison, name: str) -> tuple[Any, ...]:
    """Returns the values of one row on the main input."""
    row = comparison.row(name)
    assert row is not None, name
    return row.values


def by_input(comparison: Comparison, name: str, operand: int) -> dict[str, Any]:
    """Returns input id -> value, for one probe and operand."""
    row = comparison.row(name)
    assert row is not None, name
    return {comparison.inputs[place].id: answer.value for place, answer in row.answers(operand).items()}
