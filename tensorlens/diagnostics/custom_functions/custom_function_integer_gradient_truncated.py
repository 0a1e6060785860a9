"""Finds the cause of `custom-function-integer-gradient-truncated`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.custom_function_runs import backward_runs
from tensorlens.diagnostics.shared.silent_saved_tensor import backward_of
from tensorlens.diagnostics.shared.wording import finding, fix, op_text
from tensorlens.records.callbacks import Run
from tensorlens.records.model import Call, Span, Tensor
from tensorlens.records.report import Diagnostic, Edit

CODE = "custom-function-integer-gradient-truncated"


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    reported: set[int | None] = set()
    for run, call in backward_runs(facts):
        for value in run.values:
            made = None if value.tensor is None else _rounding(facts, value.tensor)
            if made is not None and run.returned not in reported:
                reported.add(run.returned)
                yield _report(facts, run, call, made)


def _rounding(facts: TraceIndex, number: int) -> Call | None:
    """Finds the call that turned a floating-point gradient into this integer tensor."""
    made = facts.creator(number)
    if made is None or not _is_integer(facts.tensor(number)):
        return None
    return made if any(not _is_integer(facts.tensor(access.tensor)) for access in made.inputs) else None


def _is_integer(tensor: Tensor) -> bool:
    return tensor.dtype.startswith(("int", "uint", "bool"))


def _without(facts: TraceIndex, made: Call) -> tuple[Edit, ...]:
    """Leaves the conversion out: `(gradient / 2).int()` becomes `(gradient / 2)`."""
    span = facts.trace.sites[made.site].span
    node = facts.names.syntax.node(span)
    method = made.op.rpartition(".")[2]
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != method:
        return ()
    if node.args or node.keywords:
        return ()
    whole, name = span, facts.span_of(node.func, span.file)
    begin = name.end_column - len(method) - 1
    return (Edit(Span(span.file, name.end_line, begin, whole.end_line, whole.end_column), ""),)


def _report(facts: TraceIndex, run: Run, call: Call, made: Call) -> Diagnostic:
    function = call.op.removesuffix(".apply")
    dtype = facts.tensor(made.outputs[0].tensor).dtype
    backward = backward_of(facts, run.index)
    return finding(
        CODE,
        "warning",
        f"`{function}.backward` returns a gradient of type {dtype}: its fractions are lost",
        f"{op_text(made.op)} cuts the gradient to whole numbers, and PyTorch converts it back without a warning",
        [
            facts.label("returned_here", run.returned, f"the gradient is {dtype} here"),
            None if backward is None else facts.label("needed_here", backward.site, "passes it on"),
        ],
        fixes=(
            fix(
                f"return the gradient as it is, without {op_text(made.op)}",
                *_without(facts, made),
                place=facts.span(made.site),
            ),
        ),
        evidence={"function": function, "dtype": dtype, "op": made.op},
    )
