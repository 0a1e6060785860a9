"""Names tensors that are made again from the values of another one, as `torch.tensor(y.tolist())`: no gradient passes.

The expression itself takes the values out of torch, and a recorded call uses the new tensor.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.lineage import ancestry, graph_leaves
from tensorlens.analysis.trace_index import OPS_LEAVING_TORCH, TraceIndex
from tensorlens.analysis.training.constant_terms import op_name, trained_by
from tensorlens.analysis.training.loss_calls import examined_passes, is_arithmetic, recorded_above
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.model import Backward, Call, Span
from tensorlens.records.report import StandingOut

_MAKING = frozenset(("tensor", "as_tensor", "asarray", "from_numpy", "FloatTensor", "Tensor"))
_JOINING = frozenset(("add", "radd", "iadd", "cat", "stack"))
_MAX_CALLS = 32


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts, said = training.facts, set[int]()
    making = [call for call in facts.calls if op_name(call) in _MAKING and not call.inputs]
    if not making or training.training.is_hidden:
        return
    for backward in examined_passes(facts):
        used = trained_by(training.training, backward)
        for made, taken in _made_again(facts, backward) if used else ():
            source, before = _with_history(facts, taken)
            rows = [row for row in training.rows if row.tensor in used & graph_leaves(facts, source, before)]
            if rows and made.site not in said:
                said.add(made.site)
                yield stands_out(
                    f"{as_written(facts, made)} makes a new tensor of the values of {named(facts, source, before)}, "
                    f"which is computed from {listed(rows)}: no gradient passes",
                    facts.label("graph_cut_here", made.site, "a new tensor, without a graph", made.index),
                    facts.label("needed_here", backward.site, "backward"),
                )


def _made_again(facts: TraceIndex, backward: Backward) -> Iterator[tuple[Call, Call]]:
    """Yields the calls that make such tensors for a pass, each with the call that takes the values out of torch.

    A factor of the loss and the target of a loss are left out: they are meant to be constants.
    """
    seen = set[int]()
    for call in recorded_above(facts, backward):
        if is_arithmetic(call) and op_name(call) not in _JOINING:
            continue
        for access in call.inputs:
            if access.tensor in seen or facts.requires_grad(access.tensor, call.index - 1):
                continue
            seen.add(access.tensor)
            for _, made in ancestry(facts, access.tensor, call.index, _MAX_CALLS):
                taken = _taken_inside(facts, made) if op_name(made) in _MAKING and not made.inputs else None
                if taken is not None:
                    yield made, taken


def _taken_inside(facts: TraceIndex, made: Call) -> Call | None:
    """Returns the call inside the expression of another that takes values with a history out of torch."""
    around = facts.span(made.site)
    for index in range(made.index - 1, max(made.index - _MAX_CALLS, -1), -1):
        call = facts.call(index)
        if call is None or call.op not in OPS_LEAVING_TORCH or not call.inputs:
            continue
        span = facts.span(call.site)
        if around is None or span is None or not _is_inside(span, around):
            return None
        if facts.requires_grad(_with_history(facts, call)[0], call.index):
            return call
    return None


def _with_history(facts: TraceIndex, taken: Call) -> tuple[int, int]:
    """Returns the tensor that a call takes the values of, and the call's index; without `detach()` in between."""
    number, before = taken.inputs[0].tensor, taken.index
    made = next(iter(facts.producers(number, before)), None)
    if made is not None and op_name(made) in ("detach", "get") and made.inputs:
        return made.inputs[0].tensor, made.index
    return number, before


def _is_inside(span: Span, around: Span) -> bool:
    begins, ends = (span.line, span.column), (span.end_line, span.end_column)
    outer = (around.line, around.column), (around.end_line, around.end_column)
    return span.file == around.file and outer[0] < begins and ends <= outer[1]
