"""Finds the cause of `custom-function-none-gradient`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.lineage import leaves_above
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.custom_function_runs import missing_gradients
from tensorlens.diagnostics.shared.silent_saved_tensor import backward_of
from tensorlens.diagnostics.shared.wording import finding, fix, named
from tensorlens.records.callbacks import Run
from tensorlens.records.model import Call
from tensorlens.records.report import Diagnostic

CODE = "custom-function-none-gradient"


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    for run, call, missing in missing_gradients(facts):
        yield _report(facts, run, call, missing)


def _report(facts: TraceIndex, run: Run, call: Call, missing: list[int]) -> Diagnostic:
    names = ", ".join(named(facts, number, call.index) for number in missing)
    one = len(missing) == 1
    function = call.op.removesuffix(".apply")
    backward = backward_of(facts, run.index)
    leaves = {number for number in missing if facts.is_leaf_requiring_grad(number, call.index)}
    leaves |= {leaf for number in missing for leaf in leaves_above(facts, number, call.index)}
    has_other_path = backward is not None and leaves <= {each.tensor for each in backward.gradients}
    return finding(
        CODE,
        "note" if has_other_path else "warning",
        f"`{function}.backward` gives no gradient for {names}",
        f"PyTorch takes None as zero, so none goes back through {'this input' if one else 'these inputs'}, which "
        f"{'requires' if one else 'require'} grad",
        [
            facts.label("returned_here", run.returned, f"returns None for {names}"),
            None if backward is None else facts.label("needed_here", backward.site, "backward asks for the gradient"),
        ],
        fixes=(
            fix(
                f"return the gradient for {names}: one value for each argument of `forward`, in the same order",
                place=facts.span(run.returned),
            ),
            fix(
                f"or, if this input is not to be trained, pass {'it' if one else 'each of them'} with `.detach()`",
                place=facts.span(call.site),
            ),
        ),
        evidence={"function": function, "returned": [value.type for value in run.values]},
    )
