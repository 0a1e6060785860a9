"""Names tensors that are made again from the values of another one, as `torch.tensor(y.tolist())`: no gradient passes.

The expression itself takes the values out of torch, and a recorded call uses the new tensor.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import is_inside
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
_COUNTING = ("range", "int", "bool", "len", "round")
_CONVERTING = frozenset("list tuple float sum abs min max sorted reversed zip enumerate map array asarray".split())
_LIBRARIES = frozenset(("torch", "np", "numpy", "math", "F", "th"))
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
    if facts.names.syntax.is_head(facts.trace.sites[made.site]):
        return None  # the span of a loop has its body as well
    for index in range(made.index - 1, max(made.index - _MAX_CALLS, -1), -1):
        call = facts.call(index)
        if call is None or call.op not in OPS_LEAVING_TORCH or not call.inputs:
            continue
        span = facts.span(call.site)
        if around is None or span is None or span == around or not is_inside(span, around):
            return None
        if not _carries_values(facts, around, span) or _computes(facts, around, span):
            continue
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


def _carries_values(facts: TraceIndex, around: Span, inner: Span) -> bool:
    """Returns whether the values of a part of an expression go into its result, and are not only compared or counted
    with."""
    node = facts.names.syntax.node(around)
    parts = [_not_carried(each) for each in ast.walk(node)] if node is not None else []
    return not any(part is not None and is_inside(inner, facts.span_of(part, around.file)) for part in parts)


def _computes(facts: TraceIndex, around: Span, inner: Span) -> bool:
    """Returns whether a function or a method that is no plain conversion computes something from the values of a part
    of an expression: what it returns are other values, as those of `env.step(action.numpy())`."""
    node = facts.names.syntax.node(around)
    calls = [each for each in ast.walk(node) if isinstance(each, ast.Call)] if node is not None else []
    for call in calls:
        span = facts.span_of(call, around.file)
        arguments = [*call.args, *(each.value for each in call.keywords)]
        is_given = any(is_inside(inner, facts.span_of(each, around.file)) for each in arguments)
        if is_given and span != around and not _converts(call.func):
            return True
    return False


def _converts(function: ast.expr) -> bool:
    """Returns whether the values that a function returns are those that it is given, or small changes of them."""
    if isinstance(function, ast.Attribute):
        return isinstance(function.value, ast.Name) and function.value.id in _LIBRARIES
    return isinstance(function, ast.Name) and function.id in _CONVERTING


def _not_carried(node: ast.AST) -> ast.expr | None:
    """Returns the part of an expression whose values do not go into its result: a comparison, a condition, an index."""
    if isinstance(node, ast.Compare | ast.BoolOp):
        return node
    if isinstance(node, ast.IfExp):
        return node.test
    if isinstance(node, ast.Subscript):
        return node.slice
    is_count = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _COUNTING
    return node if isinstance(node, ast.Call) and is_count else None
