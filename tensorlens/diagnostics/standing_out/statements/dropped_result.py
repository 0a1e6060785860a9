"""Names statements that compute a tensor from another one and drop it, as `p.grad.clamp(-1, 1)` does, and those that
compute one from a trained parameter and give it a name that no line reads."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from tensorlens.analysis.code_around import function_around
from tensorlens.analysis.timed_code import is_timed
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_IN_PLACE = frozenset(
    """
    abs add addcdiv addcmul addmm clamp clamp_max clamp_min clip copysign detach div divide exp fill_diagonal index_add
    index_copy index_fill index_put lerp log masked_fill masked_scatter maximum mul multiply nan_to_num neg pow
    reciprocal relu renorm round rsqrt scatter scatter_add scatter_reduce sigmoid sign sqrt square squeeze sub subtract
    t tanh transpose tril triu true_divide unsqueeze
""".split()
)  # those that have a twin which changes the tensor itself
_FUNCTIONS = _IN_PLACE | frozenset(
    "dropout relu gelu leaky_relu normalize softmax log_softmax layer_norm sigmoid tanh where".split()
)  # also those that have no twin: nothing else becomes of what a function of torch returns
_MIN_RUNS = 2
_COPIES = frozenset("to float double half bfloat16 cpu cuda contiguous clone".split())
_PRODUCTS = frozenset("matmul rmatmul mm bmm addmm baddbmm linear bilinear einsum tensordot outer".split())


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds such statements among the calls that the script writes itself. A call without a tensor is none: it may be
    there to draw random numbers. Neither is one that is apart from the training, as a cell of a notebook is, or a
    function that is timed."""
    facts = training.facts
    sites: dict[int, list[Call]] = defaultdict(list)
    for call in facts.calls:
        names = _IN_PLACE | _COPIES if call.op.startswith("Tensor.") else _FUNCTIONS
        if not call.within and _name(call) in names:
            sites[call.site].append(call)
    for calls in sites.values():
        if (
            all(_makes_another(call) for call in calls)
            and _is_statement(facts, calls[0])
            and _is_of_training(training, calls)
        ):
            name, times = _name(calls[0]), "" if len(calls) == 1 else f", {len(calls):,} times"
            is_method = f".{name}(" in as_written(facts, calls[0])
            how = f": `{name}_()` changes the tensor itself" if name in _IN_PLACE and is_method else ""
            yield stands_out(
                f"{as_written(facts, calls[0])} makes a new tensor that nothing uses{times}{how}",
                facts.label("observed_here", calls[0].site, "the result is dropped", calls[0].index),
            )

    yield from _unread_names(training)


def _is_of_training(training: MeasuredTraining, calls: list[Call]) -> bool:
    """Returns whether calls of one line read a parameter or its gradient, or run between the passes of a training."""
    facts, timeline = training.facts, training.training
    held = {storage for row in training.rows if row.is_stepped for storage in facts.storages_of(row.tensor)}
    span = facts.span(calls[0].site)
    if span is None or is_timed(facts, span):
        return False
    if len(calls) == 1 and function_around(facts, span.file, span.line) is None:
        return False
    for call in calls:
        numbers = [access.tensor for access in call.inputs]
        if any(n in timeline.gradient_of or facts.storage_of(n, call.index) in held for n in numbers):
            return True
    passes = [each.index for each in facts.backwards]
    return any(calls[0].index < each < calls[-1].index for each in passes)


def _unread_names(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds assignments that run again and again while gradients are off.

    They compute other values for the parameter itself. A pass through a layer does not: it may be there for the time
    that it takes, or for the statistics of a batch norm.
    """
    facts = training.facts
    rows = {row.tensor: row for row in training.rows if row.is_stepped}
    sites: dict[int, list[Call]] = defaultdict(list)
    for call in facts.calls if rows else ():
        used = [access.tensor for access in call.inputs if access.tensor in rows]
        if (
            used
            and call.mode != "grad"
            and not call.within
            and _makes_another(call)
            and _is_value(facts, call, used[0])
        ):
            sites[call.site].append(call)
    for calls in sites.values():
        target = _unread_target(facts, calls[0]) if len(calls) >= _MIN_RUNS else None
        if target is not None:
            row = next(rows[access.tensor] for access in calls[0].inputs if access.tensor in rows)
            yield stands_out(
                f"{as_written(facts, calls[0])} is assigned to `{target}`, which no line reads, {len(calls):,} times: "
                f"`{row.name}` stays as it is",
                facts.label("observed_here", calls[0].site, "nothing reads the result", calls[0].index),
            )


def _is_value(facts: TraceIndex, call: Call, parameter: int) -> bool:
    """Returns whether the source writes the call itself, and its result has the shape of the parameter."""
    is_own = isinstance(facts.node_at(call.site), ast.BinOp) or facts.names.syntax.is_direct(
        facts.trace.sites[call.site], call.op
    )
    is_shaped = facts.tensor(call.outputs[0].tensor).shape == facts.tensor(parameter).shape
    return is_own and is_shaped and _name(call) not in _PRODUCTS


def _unread_target(facts: TraceIndex, call: Call) -> str | None:
    """Returns the variable that a whole statement assigns a call's result to, if no line of the file reads it."""
    span, node = facts.span(call.site), facts.node_at(call.site)
    if span is None or not isinstance(node, ast.Call | ast.BinOp):
        return None
    nodes = list(ast.walk(facts.tree(span.file)))
    for statement in (each for each in nodes if isinstance(each, ast.Assign) and each.value is not None):
        target = statement.targets[0]
        if (
            len(statement.targets) == 1
            and isinstance(target, ast.Name)
            and facts.span_of(statement.value, span.file) == span
        ):
            read = {each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}
            return None if target.id in read or target.id.startswith("_") else target.id
    return None


def _name(call: Call) -> str:
    return call.op.rpartition(".")[2]


def _makes_another(call: Call) -> bool:
    given = {access.tensor for access in call.inputs}
    return bool(given) and bool(call.outputs) and not call.writes and given.isdisjoint(a.tensor for a in call.outputs)


def _is_statement(facts: TraceIndex, call: Call) -> bool:
    """Returns whether the call is all that a statement does."""
    span, site = facts.span(call.site), facts.trace.sites[call.site]
    node = facts.node_at(call.site)
    is_own = isinstance(node, ast.BinOp) or facts.names.syntax.is_direct(site, call.op)
    if span is None or not isinstance(node, ast.Call | ast.BinOp) or not is_own:
        return False
    statements = (each for each in ast.walk(facts.tree(span.file)) if isinstance(each, ast.Expr))
    return any(facts.span_of(each.value, span.file) == span for each in statements)
