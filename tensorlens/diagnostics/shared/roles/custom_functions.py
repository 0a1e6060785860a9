"""Finds the lines of custom Functions and operators: their classes and methods, and the calls that recorded them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.user_callbacks import (
    CallbackRun,
    call_running,
    class_at,
    custom_operator,
    last_run_that_returned,
    method_at,
    registrations,
    runs_before,
)
from tensorlens.diagnostics.shared.edits.summed_gradients import summed_gradient
from tensorlens.diagnostics.shared.rejected_call import LabelledSite, RejectedCall
from tensorlens.diagnostics.shared.roles import contexts
from tensorlens.diagnostics.shared.roles.hooks import defined_at, only_return, takes
from tensorlens.diagnostics.shared.wording import op_text
from tensorlens.records.callbacks import Registration
from tensorlens.records.model import Call


def returned_by_forward(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the `return` of a custom `forward`: that of the rejected call, or of the call that made its view."""
    site, op = _apply(rejected)
    return only_return(method_at(rejected.facts, "forward", site, op), "returns its result here")


def summed(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the `sum()` in a `backward` that added up more dimensions than `forward` had added."""
    found = summed_gradient(rejected.facts, rejected.index, rejected.message)
    return None if found is None else LabelledSite(None, found.site, "adds up all dimensions")


def made_view(rejected: RejectedCall) -> LabelledSite | None:
    """Finds what made the view: the `return` of a custom Function, else the module whose full backward hook makes
    views."""
    place = returned_by_forward(rejected)
    if place is not None:
        return place
    for hooked, _ in registrations(rejected.facts, "hooked forward", rejected.site):
        for made, function in registrations(rejected.facts, "module", None, hooked.target):
            if made.kind == "module":
                text = f"this `{function.name}` has a full backward hook, which makes views of its input and result"
                return LabelledSite(None, made.site, text)
    return None


def returned_by_operator(rejected: RejectedCall) -> LabelledSite | None:
    return only_return(custom_operator(rejected.facts, rejected.op), "returns its result here")


def rejected_forward(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the definition of the `forward` that the rejected call could not run."""
    site, op = _apply(rejected)
    function = method_at(rejected.facts, "forward", site, op)
    return None if function is None else takes(function)


def forward_not_callable(rejected: RejectedCall) -> bool:
    """Returns whether the call of a custom Function failed before a line of its `forward` ran."""
    return rejected.op.endswith(".apply") and rejected.raised is None and rejected_forward(rejected) is not None


def defined_class(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the class of the custom Function that was called, or whose backward ran last."""
    site, op = _apply(rejected)
    return defined_at(class_at(rejected.facts, site, op))


def not_called(rejected: RejectedCall) -> bool:
    """Returns whether an object of a custom Function was made and not called: calling it is an error with its own
    code."""
    called = (rejected.facts.span(failure.site) for failure in rejected.facts.failures("legacy-function-called"))
    made = rejected.facts.span(rejected.site)
    return made is None or all(span is None or span.line != made.line for span in called)


def instantiated(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the `forward` of the custom Function of which the rejected line makes an instance."""
    here = rejected.facts.span(rejected.site)
    for known, function in registrations(rejected.facts, "forward"):
        made = rejected.facts.span(known.site)
        if made is not None and here is not None and (made.file, made.line) == (here.file, here.line):
            return defined_at(function)
    return None


def defined_forward(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the `forward`, or the operator, whose backward ran last."""
    callback = last_run_that_returned(rejected.facts, rejected.index)
    if callback is not None and callback.registration.kind.startswith("backward of "):
        return defined_at(custom_operator(rejected.facts, callback.registration.kind.removeprefix("backward of ")))
    site, op = _apply(rejected)
    return defined_at(method_at(rejected.facts, "forward", site, op))


def defined_operator(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the implementation of the custom operator that the graph went through."""
    for call in _calls_above(rejected):
        function = custom_operator(rejected.facts, call.op)
        if function is not None:
            return defined_at(function)
    return None


def called_operator(rejected: RejectedCall) -> LabelledSite | None:
    if custom_operator(rejected.facts, rejected.op) is not None:
        return LabelledSite(None, rejected.site, f"{op_text(rejected.op)} is called here")
    for call in _calls_above(rejected):
        if custom_operator(rejected.facts, call.op) is not None:
            return LabelledSite(None, call.site, f"{op_text(call.op)} is called here")
    return None


def _calls_above(rejected: RejectedCall) -> Iterator[Call]:
    facts = rejected.facts
    event = facts.event(rejected.index)
    roots = rejected.inputs or getattr(event, "roots", ())
    found = [pair for access in roots for pair in ancestry(facts, access.tensor, rejected.index)]
    yield from (call for _, call in found)
    made = {number for number, _ in found}  # an operator only returns the tensor that its node's Function made
    yield from (c for c in facts.calls if c.index < rejected.index and any(a.tensor in made for a in c.outputs))


def marked_dirty(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the line that declared an input as changed in place."""
    mark = _of_context(rejected, "ctx.mark_dirty")
    return None if mark is None else LabelledSite(None, mark.site, "declared here as changed in place")


def saving(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the line of `forward` that saved something that is not a tensor. PyTorch rejects it after `forward`
    returned."""
    saved = _of_context(rejected, "ctx.save_for_backward")
    text = "saved here, with something that is not a tensor"
    return None if saved is None else LabelledSite(None, saved.site, text)


def _of_context(rejected: RejectedCall, op: str) -> Call | None:
    """Finds the last call of a method of the context in the class of the rejected call, not in a Function that its
    `forward` applied; None if that is not known."""
    facts, class_name = rejected.facts, rejected.op.removesuffix(".apply").rpartition(".")[2]
    made = [call for call in facts.calls if call.op == op and call.index < rejected.index]
    own = [call for call in made if class_name in facts.trace.sites[call.site].function.split(".")[:-1]]
    functions = {facts.trace.sites[call.site].function for call in made}
    return next(reversed(own or (made if len(functions) == 1 else [])), None)


def marked_once(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the `once_differentiable` mark of a `backward` that ran before."""
    once = _once(rejected)
    return None if once is None else LabelledSite(None, once[1].site, f"`{once[0].function.name}` is marked here")


def graph_of_once(rejected: RejectedCall) -> LabelledSite | None:
    once = _once(rejected)
    call = None if once is None else call_running(rejected.facts, once[0], rejected.index)
    return None if call is None else LabelledSite(None, call.site, f"{op_text(call.op)} is part of the graph")


def _once(rejected: RejectedCall) -> tuple[CallbackRun, Registration] | None:
    marks = {function.id: mark for mark, function in registrations(rejected.facts, "once differentiable")}
    for run in reversed(rejected.facts.trace.callbacks.runs):
        known = rejected.facts.trace.callbacks.registrations[run.registration]
        if run.index <= rejected.index and known.function in marks:
            function = rejected.facts.trace.callbacks.functions[known.function]
            return CallbackRun(run, known, function), marks[known.function]
    return None


def called(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the call of the custom Function whose node ran last, else the call around the rejected one.

    If a checkpoint raised the error, it finds the call of the checkpoint.
    """
    callback = next(iter(runs_before(rejected.facts, rejected.index)), None)
    failure = rejected.failure
    again = failure is not None and (failure.type == "CheckpointError" or "checkpoint" in failure.message)
    call = None if callback is None or again else call_running(rejected.facts, callback, rejected.index)
    if call is None or rejected.op.endswith(".apply"):
        return contexts.called(rejected)
    return LabelledSite(None, call.site, f"{op_text(call.op)} is called here")


def _apply(rejected: RejectedCall) -> tuple[int | None, str]:
    """Returns (site, class) of the custom Function's call that a rejected call is about."""
    facts = rejected.facts
    if rejected.op.endswith(".apply"):
        return rejected.site, rejected.op.removesuffix(".apply")
    event = facts.event(rejected.index)
    if getattr(event, "failed", False):
        callback = next((c for c in runs_before(facts, rejected.index) if c.run.node is not None), None)
        call = None if callback is None else call_running(facts, callback, rejected.index)
        if call is not None:
            return call.site, call.op.removesuffix(".apply")
    for call in _calls_above(rejected):
        if call.op.endswith(".apply") and class_at(facts, call.site) is not None:
            return call.site, call.op.removesuffix(".apply")
    return rejected.site, ""


ROLES: dict[str, Callable[[RejectedCall], LabelledSite | None]] = {
    "value_made_here:summed": summed,
    "returned_here:forward": returned_by_forward,
    "returned_here:operator": returned_by_operator,
    "function_defined_here:rejected_forward": rejected_forward,
    "function_defined_here:class": defined_class,
    "function_defined_here:forward": defined_forward,
    "function_defined_here:operator": defined_operator,
    "function_defined_here:returned": made_view,
    "function_defined_here:legacy": instantiated,
    "function_defined_here:dirty": marked_dirty,
    "function_defined_here:once": marked_once,
    "graph_built_here:once": graph_of_once,
    "rejected_here:saving": saving,
    "called_here": called,
    "called_here:operator": called_operator,
}
