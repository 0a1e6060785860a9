"""Names lines that freeze parameters for a while in a function, again and again, and that nothing unfreezes."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from tensorlens.analysis.code_around import function_around, statement_around, upwards
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.analysis.training.timeline import FLAG_SETS
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_MIN_RUNS = 3
_MIN_MISSED = 3  # steps


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds parameters that were trained before, and that the same function uses after it has frozen them."""
    facts = training.facts
    flags: dict[int, list[Call]] = defaultdict(list)
    for call in facts.calls:
        if call.op in FLAG_SETS and call.inputs:
            flags[call.inputs[0].tensor].append(call)
    lines: dict[int, list[ParameterRow]] = defaultdict(list)
    calls: dict[int, Call] = {}
    for row in training.rows:
        own, calls_of = row.statistics, flags.get(row.tensor, [])
        if own is None or not row.is_stepped or row.requires_grad or not own.filled or len(calls_of) < _MIN_RUNS:
            continue
        missed = own.rounds - own.filled
        if len({call.site for call in calls_of}) == 1 and missed >= _MIN_MISSED and _is_passing(facts, calls_of, row):
            lines[calls_of[0].site].append(row)
            calls[calls_of[0].site] = calls_of[0]
    for site, rows in lines.items():
        own, group = rows[0].statistics, rows[0].group
        assert own is not None
        assert group is not None
        them = "it" if len(rows) == 1 else "them"
        yield stands_out(
            f"{as_written(facts, calls[site])} freezes {listed(rows)} each time that its function runs, and no line "
            f"unfreezes {them}: {own.rounds - own.filled:,} of {own.rounds:,} steps of `{group.name}` find no gradient",
            facts.label("flag_changed_here", site, "frozen from the first run on", calls[site].index),
            facts.label("optimizer_made_here", group.site, "its steps find no gradient any more"),
        )


def _is_passing(facts: TraceIndex, flags: list[Call], row: ParameterRow) -> bool:
    """Returns whether a function freezes a parameter in each of its runs and then uses it, as for a passing purpose."""
    span = facts.span(flags[0].site)
    function = None if span is None else function_around(facts, span.file, span.line)
    statement = None if span is None else statement_around(facts, span)
    if span is None or function is None or statement is None or "False" not in ast.unparse(statement):
        return False
    around = list(upwards(facts, span.file, statement))
    if any(isinstance(each, ast.If | ast.Try) for each in around[: around.index(function)]):
        return False
    later = [call for call in facts.calls_between(flags[0].index + 1, flags[1].index) if call.op not in FLAG_SETS]
    own = [call.index for call in later if _is_in(facts, call, function)]
    return any(
        call.index < own[-1] and any(access.tensor == row.tensor for access in call.inputs)
        for call in (later if own else ())
    )


def _is_in(facts: TraceIndex, call: Call, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    span = facts.span(call.site)
    return span is not None and function_around(facts, span.file, span.line) is function
