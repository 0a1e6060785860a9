"""Finds the cause of `custom-function-none-gradient`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.facts import TraceIndex
from tensorlens.diagnostics.shared.custom_function_runs import backward_runs, gradient_of, inputs_needing_gradient
from tensorlens.diagnostics.shared.silent_saved_tensor import backward_of
from tensorlens.diagnostics.shared.wording import finding, fix, named
from tensorlens.records.callbacks import Run
from tensorlens.records.model import Call, Diagnostic

CODE = "custom-function-none-gradient"


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    reported: set[int | None] = set()
    for run, call in backward_runs(facts):
        if (backward := backward_of(facts, run.index)) is not None and backward.failed:
            continue  # what it returned was rejected, for a different reason
        missing = _missing(facts, run, call)
        if missing and run.returned not in reported:
            reported.add(run.returned)
            yield _report(facts, run, call, missing)


def _missing(facts: TraceIndex, run: Run, call: Call) -> list[int]:
    """Finds the inputs that need a gradient and got None; if the positions are not known, those whose gradient stayed
    None."""
    wanted = inputs_needing_gradient(facts, call)
    nothing = [position for position, value in enumerate(run.values) if value.type == "NoneType"]
    if len(run.values) == len(call.inputs):
        return [call.inputs[p].tensor for p in nothing if call.inputs[p].tensor in wanted]
    plain = len(run.values) - len(call.inputs)  # arguments that are no tensors
    unneeded = sum(access.tensor not in wanted for access in call.inputs)
    if len(nothing) <= plain + unneeded:
        return []
    leaves = [n for n in wanted if (state := facts.state(n, call.index)) is not None and state.is_leaf]
    return [number for number in leaves if gradient_of(facts, number, run.index) is None]


def _report(facts: TraceIndex, run: Run, call: Call, missing: list[int]) -> Diagnostic:
    names = ", ".join(named(facts, number, call.index) for number in missing)
    one = len(missing) == 1
    function = call.op.removesuffix(".apply")
    backward = backward_of(facts, run.index)
    return finding(
        CODE,
        "warning",
        f"`{function}.backward` gives no gradient for {names}",
        f"{names} {'requires' if one else 'require'} grad and {'goes' if one else 'go'} into `{function}`, but its "
        f"`backward` returns None for {'it' if one else 'them'}: PyTorch takes that as zero, and nothing trains "
        f"through {'this input' if one else 'these inputs'}",
        [
            facts.label("returned_here", run.returned, f"None for {names}"),
            None if backward is None else facts.label("needed_here", backward.site, "backward asks for the gradient"),
        ],
        fixes=(
            fix(f"return the gradient for {names}: one value for each argument of `forward`, in the same order"),
            fix(f"if none is meant, pass {'it' if one else 'them'} as `.detach()`"),
        ),
        evidence={"function": function, "returned": [value.type for value in run.values]},
    )
