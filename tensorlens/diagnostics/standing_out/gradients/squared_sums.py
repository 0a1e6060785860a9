"""Names squares of gradients that are summed over passes, where the gradients themselves add up from pass to pass.

So it is with the importance of weights, as in elastic weight consolidation, if nothing clears the gradients in between.
"""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from tensorlens.analysis.code_around import statement_around
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.timeline import GRAD_READ, Moment
from tensorlens.analysis.written_numbers import written_number
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_SQUARES = frozenset("pow square mul addcmul".split())
_ADDING = frozenset("add_ addcmul_".split())
_REDUCING = frozenset("sum mean norm item max amax".split())
_LEAVING = frozenset(("numpy", "from_numpy"))
_MIN_RUNS = 4


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts, leaf_of = training.facts, dict[int, int]()
    squares: dict[tuple[int, int], list[Call]] = defaultdict(list)  # by line and leaf
    for call in facts.calls:
        if call.op == GRAD_READ and call.outputs:
            leaf_of[call.outputs[0].tensor] = call.inputs[0].tensor
        elif op_name(call) in _SQUARES and not call.within:
            leaves = [leaf_of[access.tensor] for access in call.inputs if access.tensor in leaf_of]
            if leaves and (
                op_name(call) == "square"
                or (op_name(call) == "pow" and _is_square(facts, call))
                or (len(leaves) == 2 and len(set(leaves)) == 1)
            ):
                squares[call.site, leaves[0]].append(call)
    if any(op_name(call) in _LEAVING and call.inputs[0].tensor in leaf_of for call in facts.calls if call.inputs):
        return  # an array may clear the gradients
    reported = set[int]()
    for (site, leaf), calls in squares.items():
        moments = training.training.moments.get(leaf, [])
        runs = sum(_adds_up(facts, moments, one, other) for one, other in pairwise(calls))
        if site not in reported and runs + 1 >= _MIN_RUNS and _is_summed(facts, calls[0]):
            reported.add(site)
            fills = [moment for moment in moments if moment.kind == "fill" and moment.index < calls[-1].index]
            yield stands_out(
                f"{as_written(facts, calls[-1])} squares the sum of the gradients of several passes, {runs:,} times: "
                "nothing clears them between one pass and the next, and the squares are added up",
                facts.label("accumulated_here", fills[-1].event.site, "adds to the gradient", fills[-1].index),
                facts.label("observed_here", site, "squares the sum", calls[-1].index),
            )


def _is_square(facts: TraceIndex, call: Call) -> bool:
    span = facts.span(call.site)
    node = None if span is None else facts.names.syntax.node(span)
    given = [node.right] if isinstance(node, ast.BinOp) else node.args[-1:] if isinstance(node, ast.Call) else []
    return bool(given) and written_number(facts, given[0]) == 2


def _adds_up(facts: TraceIndex, moments: list[Moment], one: Call, other: Call) -> bool:
    """Returns whether a pass adds to a gradient between two runs of a line, and nothing else changes it."""
    first, last = (bisect_left(moments, call.index, key=lambda moment: moment.index) for call in (one, other))
    between = moments[first:last]
    if not between or any(moment.kind != "fill" for moment in between):
        return False
    memory = facts.storage_of(other.inputs[0].tensor, other.index)
    calls = facts.calls_between(one.index + 1, other.index - 1)
    return not any(facts.storage_of(write.tensor, call.index) == memory for call in calls for write in call.writes)


def _is_summed(facts: TraceIndex, call: Call) -> bool:
    """Returns whether the statement of a call adds the squares, as they are, to what it had before."""
    span = facts.span(call.site)
    statement = None if span is None else statement_around(facts, span)
    if statement is not None and any(
        isinstance(node, ast.Call) and getattr(node.func, "attr", "") in _REDUCING for node in ast.walk(statement)
    ):
        return False
    if isinstance(statement, ast.AugAssign):
        return isinstance(statement.op, ast.Add)
    nodes = [] if statement is None else list(ast.walk(statement))
    return any(isinstance(node, ast.Call) and getattr(node.func, "attr", "") in _ADDING for node in nodes)
