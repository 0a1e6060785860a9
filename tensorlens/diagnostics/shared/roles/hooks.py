"""Roles of the user's own functions in a refusal: where one is defined, where autograd was given it, and where it
handed back what was refused.
"""

from __future__ import annotations

from collections.abc import Callable

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.user_callbacks import (
    CallbackRun,
    first_argument_text,
    last_run_that_returned,
    registrations,
    returned_text,
    runs_after,
    runs_before,
)
from tensorlens.diagnostics.shared.rejected_call import LabelledSite, RejectedCall
from tensorlens.diagnostics.shared.roles import tensors
from tensorlens.diagnostics.shared.wording import op_text
from tensorlens.records.callbacks import Function, Registration

BACKWARD_HOOKS = ("module backward", "old module backward")


def returned(refusal: RejectedCall) -> LabelledSite | None:
    """The statement that handed back what was refused right afterwards."""
    found = last_run_that_returned(refusal.facts, refusal.index)
    if found is None or found.returned is None:
        return None
    text = f"`{found.function.name}` hands back {returned_text(refusal.facts, found)}"
    return LabelledSite(None, found.returned, text)


def only_return(function: Function | None, text: str) -> LabelledSite | None:
    if function is None or len(function.returns) != 1:
        return None
    return LabelledSite(None, function.returns[0], f"`{function.name}` {text}")


def returned_by_module(refusal: RejectedCall) -> LabelledSite | None:
    hooked = registrations(refusal.facts, "hooked forward", refusal.site)
    return only_return(hooked[0][1] if hooked else None, "hands back its result here")


def registered(refusal: RejectedCall) -> LabelledSite | None:
    """Where the hook was registered that ran last before the refusal."""
    found = last_run_that_returned(refusal.facts, refusal.index)
    return None if found is None else _registered(found.registration, found.function)


def _registered(registration: Registration, function: Function) -> LabelledSite:
    return LabelledSite(None, registration.site, f"`{function.name}` is registered here: a {registration.kind}")


def registered_before(refusal: RejectedCall) -> LabelledSite | None:
    """The other registration on the thing whose second one was refused."""
    here = registrations(refusal.facts, "", refusal.site)
    target = here[0][0].target if here else None
    for known, function in registrations(refusal.facts, "", None, target):
        if known.site != refusal.site and known.target == target and known.kind.startswith(BACKWARD_HOOKS):
            return _registered(known, function)
    return None


def registered_on_called(refusal: RejectedCall) -> LabelledSite | None:
    """The backward hook of the module that is called at the refused line."""
    hooked = registrations(refusal.facts, "hooked forward", refusal.site)
    for known, function in registrations(refusal.facts, "", None, hooked[0][0].target) if hooked else ():
        if known.kind.startswith(BACKWARD_HOOKS):
            return _registered(known, function)
    for passed, _ in registrations(refusal.facts, "passed on", refusal.site):
        for known, function in registrations(refusal.facts, ""):
            if known.function == passed.function and known.kind.startswith(BACKWARD_HOOKS):
                return _registered(known, function)
    return None


def registered_and_running(refusal: RejectedCall) -> LabelledSite | None:
    """The module's hook that runs next after a warning of the backward pass."""
    found = _running(refusal)
    return None if found is None else _registered(found.registration, found.function)


def _running(refusal: RejectedCall) -> CallbackRun | None:
    after = runs_after(refusal.facts, refusal.index)
    return next((c for c in after if c.registration.kind.startswith(BACKWARD_HOOKS)), None)


def module_input(refusal: RejectedCall) -> LabelledSite | None:
    """What went into the hooked module: the first tensor that its first call read and that is no parameter."""
    running, facts = _running(refusal), refusal.facts
    target = None if running is None else running.registration.target
    calls = [] if target is None else registrations(facts, "hooked forward", None, target)
    sites = {registration.site for registration, _ in calls}
    for call in facts.calls:
        if not _within(facts, call.site, sites):
            continue
        for access in call.inputs:
            made = facts.first_use(access.tensor)
            if facts.tensor(access.tensor).type != "Parameter" and made is not None:
                text = f"{refusal.name(access.tensor)} goes into the module and does not require grad"
                return LabelledSite(access.tensor, made.site, text)
    return None


def _within(facts: TraceIndex, site: int | None, outer: set[int]) -> bool:
    """Whether a site is one of `outer`, or was come to through one of them."""
    for _ in range(len(facts.trace.sites)):
        if site is None or site in outer:
            break
        site = facts.trace.sites[site].caller
    return site in outer


def defined(refusal: RejectedCall) -> LabelledSite | None:
    """The definition of the function that autograd called last."""
    found = last_run_that_returned(refusal.facts, refusal.index)
    return None if found is None else defined_at(found.function)


def refused_function(refusal: RejectedCall) -> LabelledSite | None:
    """The definition of the function that could not be called as it was."""
    found = next(iter(runs_before(refusal.facts, refusal.index)), None)
    return None if found is None or found.run.ended != "refused" else takes(found.function)


def takes(function: Function) -> LabelledSite | None:
    if function.defined is None:
        return None
    count = "any number of" if function.most is None else function.most
    plural = "" if function.most == 1 else "s"
    return LabelledSite(None, function.defined, f"`{function.name}` takes {count} positional argument{plural}")


def defined_at(function: Function | None) -> LabelledSite | None:
    if function is None or function.defined is None:
        return None
    return LabelledSite(None, function.defined, f"`{function.name}` is defined here")


def written_by_hook(refusal: RejectedCall) -> LabelledSite | None:
    """The last change in place, within a hook, of what the hook was given."""
    found = last_run_that_returned(refusal.facts, refusal.index)
    if found is None:
        return None
    counters = {refusal.facts.tensor(number).counter for number in found.run.given}
    for call in reversed(refusal.facts.calls):
        moved = [w for w in call.writes if refusal.facts.tensor(w.tensor).counter in counters]
        if call.index < found.run.index and moved:
            text = f"{op_text(call.op)} changes what it was given: version {moved[0].before} -> {moved[0].after}"
            return LabelledSite(None, call.site, text)
    return None


def calling(refusal: RejectedCall) -> LabelledSite | None:
    """The backward pass that called the function."""
    found = last_run_that_returned(refusal.facts, refusal.index)
    name = "it" if found is None else f"`{found.function.name}`"
    return LabelledSite(
        None, refusal.site, f"{op_text(refusal.op)} runs {name}" if refusal.op else f"autograd runs {name}"
    )


def saved_tensor_hooks(refusal: RejectedCall) -> LabelledSite | None:
    found = last_run_that_returned(refusal.facts, refusal.index)
    return None if found is None else LabelledSite(None, found.registration.site, "the saved-tensor hooks begin here")


def saved(refusal: RejectedCall) -> LabelledSite | None:
    return LabelledSite(None, refusal.site, f"{op_text(refusal.op)} saves a tensor: it is packed")


def words(refusal: RejectedCall) -> dict[str, str]:
    """Template fields: {function}, and what it was {given} and handed back ({handed})."""
    found = last_run_that_returned(refusal.facts, refusal.index)
    if found is None:
        return {"function": "the function", "given": "a tensor", "handed": "something else"}
    facts = refusal.facts
    return {
        "function": f"`{found.function.name}`",
        "given": first_argument_text(facts, found),
        "handed": returned_text(facts, found),
    }


def not_callable(refusal: RejectedCall) -> bool:
    """Whether the engine could not call a function with what such a function is given."""
    return refused_function(refusal) is not None


ROLES: dict[str, Callable[[RejectedCall], LabelledSite | None]] = {
    "returned_here": returned,
    "returned_here:module": returned_by_module,
    "hook_registered_here": registered,
    "hook_registered_here:before": registered_before,
    "hook_registered_here:module": registered_on_called,
    "hook_registered_here:next": registered_and_running,
    "value_made_here:module": module_input,
    "function_defined_here": defined,
    "function_defined_here:refused": refused_function,
    "modified_here:input": tensors.modified,
    "modified_here:hook": written_by_hook,
    "needed_here:calling": calling,
    "mode_entered_here:hook": saved_tensor_hooks,
    "saved_here:hook": saved,
    "called_here:spot": tensors.spot,
}
