"""Roles of custom Functions and operators in a refusal: their classes and methods, the calls that put them in the
graph, and what they declared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tensorlens.analysis.contexts import last_recomputed_checkpoint
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
from tensorlens.diagnostics.shared.rejected_call import LabelledSite, RejectedCall
from tensorlens.diagnostics.shared.roles import contexts
from tensorlens.diagnostics.shared.roles.hooks import defined_at, only_return, takes
from tensorlens.diagnostics.shared.wording import op_text
from tensorlens.records.callbacks import Registration
from tensorlens.records.model import Call


def returned_by_forward(refusal: RejectedCall) -> LabelledSite | None:
    """The `return` of the `forward` that the refused call, or the call that made its view, ran."""
    site, op = _apply(refusal)
    return only_return(method_at(refusal.facts, "forward", site, op), "hands back its result here")


def made_view(refusal: RejectedCall) -> LabelledSite | None:
    """Where a custom Function returned the view, or where the module was made whose full backward hook makes views."""
    found = returned_by_forward(refusal)
    if found is not None:
        return found
    for hooked, _ in registrations(refusal.facts, "hooked forward", refusal.site):
        for made, function in registrations(refusal.facts, "module", None, hooked.target):
            if made.kind == "module":
                text = f"this `{function.name}` has a full backward hook, which makes views of its input and result"
                return LabelledSite(None, made.site, text)
    return None


def returned_by_operator(refusal: RejectedCall) -> LabelledSite | None:
    return only_return(custom_operator(refusal.facts, refusal.op), "hands back its result here")


def refused_forward(refusal: RejectedCall) -> LabelledSite | None:
    """The definition of the `forward` that the refused call could not run as it was."""
    site, op = _apply(refusal)
    function = method_at(refusal.facts, "forward", site, op)
    return None if function is None else takes(function)


def forward_not_callable(refusal: RejectedCall) -> bool:
    """Whether the call of a custom Function failed before a line of its `forward` ran."""
    return refusal.op.endswith(".apply") and refusal.raised is None and refused_forward(refusal) is not None


def defined_class(refusal: RejectedCall) -> LabelledSite | None:
    """The class of the custom Function that was called, or whose backward ran last."""
    site, op = _apply(refusal)
    return defined_at(class_at(refusal.facts, site, op))


def instantiated(refusal: RejectedCall) -> LabelledSite | None:
    """The `forward` of the custom Function of which the refused line makes an object."""
    refused = refusal.facts.span(refusal.site)
    for known, function in registrations(refusal.facts, "forward"):
        made = refusal.facts.span(known.site)
        if made is not None and refused is not None and (made.file, made.line) == (refused.file, refused.line):
            return defined_at(function)
    return None


def defined_forward(refusal: RejectedCall) -> LabelledSite | None:
    """The `forward`, or the operator, whose backward ran last."""
    found = last_run_that_returned(refusal.facts, refusal.index)
    if found is not None and found.registration.kind.startswith("backward of "):
        return defined_at(custom_operator(refusal.facts, found.registration.kind.removeprefix("backward of ")))
    site, op = _apply(refusal)
    return defined_at(method_at(refusal.facts, "forward", site, op))


def defined_operator(refusal: RejectedCall) -> LabelledSite | None:
    """The implementation of the custom operator that the graph went through."""
    for call in _calls_above(refusal):
        function = custom_operator(refusal.facts, call.op)
        if function is not None:
            return defined_at(function)
    return None


def called_operator(refusal: RejectedCall) -> LabelledSite | None:
    if custom_operator(refusal.facts, refusal.op) is not None:
        return LabelledSite(None, refusal.site, f"{op_text(refusal.op)} is called here")
    for call in _calls_above(refusal):
        if custom_operator(refusal.facts, call.op) is not None:
            return LabelledSite(None, call.site, f"{op_text(call.op)} is called here")
    return None


def _calls_above(refusal: RejectedCall) -> Iterator[Call]:
    facts = refusal.facts
    event = facts.event(refusal.index)
    roots = refusal.inputs or getattr(event, "roots", ())
    for access in roots:
        yield from (call for _, call in ancestry(facts, access.tensor, refusal.index))
    yield from (call for call in reversed(facts.calls) if call.index < refusal.index)


def marked_dirty(refusal: RejectedCall) -> LabelledSite | None:
    """The line that declared an input as changed in place."""
    marks = [c for c in refusal.facts.calls if c.op == "ctx.mark_dirty" and c.index < refusal.index]
    return None if not marks else LabelledSite(None, marks[-1].site, "declared here as changed in place")


def saving(refusal: RejectedCall) -> LabelledSite | None:
    """The line of `forward` that handed over what is to be saved: it is looked at only when `forward` has returned."""
    saved = [c for c in refusal.facts.calls if c.op == "ctx.save_for_backward" and c.index < refusal.index]
    return (
        None if not saved else LabelledSite(None, saved[-1].site, "handed over here, with something that is no tensor")
    )


def marked_once(refusal: RejectedCall) -> LabelledSite | None:
    """The line that marked a `backward` that ran before as differentiable once."""
    found = _once(refusal)
    return None if found is None else LabelledSite(None, found[1].site, f"`{found[0].function.name}` is marked here")


def graph_of_once(refusal: RejectedCall) -> LabelledSite | None:
    found = _once(refusal)
    call = None if found is None else call_running(refusal.facts, found[0], refusal.index)
    return None if call is None else LabelledSite(None, call.site, f"{op_text(call.op)} is part of the graph")


def _once(refusal: RejectedCall) -> tuple[CallbackRun, Registration] | None:
    marks = {function.id: mark for mark, function in registrations(refusal.facts, "once differentiable")}
    for run in reversed(refusal.facts.trace.callbacks.runs):
        known = refusal.facts.trace.callbacks.registrations[run.registration]
        if run.index <= refusal.index and known.function in marks:
            function = refusal.facts.trace.callbacks.functions[known.function]
            return CallbackRun(run, known, function), marks[known.function]
    return None


def called(refusal: RejectedCall) -> LabelledSite | None:
    """The call of the custom function whose node ran last, else as for any refusal."""
    found = next(iter(runs_before(refusal.facts, refusal.index)), None)
    again = refusal.failure is not None and last_recomputed_checkpoint(refusal.facts, refusal.failure) is not None
    call = None if found is None or again else call_running(refusal.facts, found, refusal.index)
    if call is None or refusal.op.endswith(".apply"):
        return contexts.called(refusal)
    return LabelledSite(None, call.site, f"{op_text(call.op)} is called here")


def _apply(refusal: RejectedCall) -> tuple[int | None, str]:
    """(site, class) of the call of a custom Function that a refusal is about."""
    facts = refusal.facts
    if refusal.op.endswith(".apply"):
        return refusal.site, refusal.op.removesuffix(".apply")
    event = facts.event(refusal.index)
    if getattr(event, "failed", False):
        found = next((c for c in runs_before(facts, refusal.index) if c.run.node is not None), None)
        call = None if found is None else call_running(facts, found, refusal.index)
        if call is not None:
            return call.site, call.op.removesuffix(".apply")
    for call in _calls_above(refusal):
        if call.op.endswith(".apply") and class_at(facts, call.site) is not None:
            return call.site, call.op.removesuffix(".apply")
    return refusal.site, ""


ROLES: dict[str, Callable[[RejectedCall], LabelledSite | None]] = {
    "returned_here:forward": returned_by_forward,
    "returned_here:operator": returned_by_operator,
    "function_defined_here:refused-forward": refused_forward,
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
