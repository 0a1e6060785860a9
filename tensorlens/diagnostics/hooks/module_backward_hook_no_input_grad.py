"""Finds the cause of `module-backward-hook-no-input-grad`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.rejected import rejected_calls
from tensorlens.diagnostics.shared.rejected_call import RejectedCall
from tensorlens.diagnostics.shared.roles.hooks import registered_and_running
from tensorlens.diagnostics.shared.wording import finding, fix, named
from tensorlens.records.model import Backward
from tensorlens.records.report import Diagnostic, Label

CODE = "module-backward-hook-no-input-grad"


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    for rejected in rejected_calls(facts, CODE):
        number = _module_input(facts, rejected.index)
        name = "the input" if number is None else named(facts, number, rejected.index)
        made = None if number is None else facts.first_use(number)
        yield finding(
            CODE,
            "warning",
            "a full backward hook gets no gradient for the module's input"
            + (": it does not require grad" if number is None else f": {name} does not require grad"),
            "such a hook is called before the gradients of the module's parameters are computed",
            _labels(facts, rejected, number),
            fixes=(
                fix("if the hook only reads the gradients of the outputs, change nothing"),
                fix(
                    f"if it needs those of the input, let {name} require grad before the forward pass",
                    place=None if made is None else facts.span(made.site),
                ),
            ),
            evidence={"input": name},
        )


def _labels(facts: TraceIndex, rejected: RejectedCall, number: int | None) -> Iterator[Label | None]:
    yield facts.label("needed_here", rejected.site, "the hook is called in this backward pass")
    hook = registered_and_running(rejected)
    if hook is not None:
        yield facts.label("hook_registered_here", hook.site, hook.text)
    made = None if number is None else next(iter(facts.producers(number, rejected.index)), None)
    made = made or (None if number is None else facts.first_use(number))
    if made is not None:
        text = f"{named(facts, number, rejected.index)} does not require grad"
        yield facts.label("value_made_here", made.site, text)


def _module_input(facts: TraceIndex, at: int) -> int | None:
    """Finds the input of the module with the hook: the only tensor without grad that its result was computed from.

    None if there are several: which of them is the input was not recorded.
    """
    backward = next((b for b in facts.backwards if b.started <= at <= b.index), None)
    for hook in _hooks(facts, backward):
        calls = [call for number, call in ancestry(facts, hook, at) if _is_computed(facts, number, call.index)]
        given = {a.tensor for call in calls for a in call.inputs if not facts.requires_grad(a.tensor, call.index)}
        return given.pop() if len(given) == 1 else None
    return None


def _is_computed(facts: TraceIndex, number: int, at: int) -> bool:
    state = facts.state(number, at)
    return state is not None and state.requires_grad and not state.is_leaf


def _hooks(facts: TraceIndex, backward: Backward | None) -> Iterator[int]:
    """Finds the results of modules with full backward hooks that this pass goes through."""
    for root in () if backward is None else backward.roots:
        for _, call in ancestry(facts, root.tensor, root_index(backward)):
            if call.op == "BackwardHookFunction.apply" and call.inputs:
                yield call.inputs[0].tensor


def root_index(backward: Backward | None) -> int:
    return 0 if backward is None else backward.started
