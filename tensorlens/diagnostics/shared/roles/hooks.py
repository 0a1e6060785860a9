"""Finds the lines of the user's callbacks: where each is defined and registered, and where it returned a value."""

from __future__ import annotations

from collections.abc import Callable

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


def returned(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the `return` statement of the rejected value."""
    callback = last_run_that_returned(rejected.facts, rejected.index)
    if callback is None or callback.returned is None:
        return None
    text = f"`{callback.function.name}` returns {returned_text(rejected.facts, callback)}"
    return LabelledSite(None, callback.returned, text)


def only_return(function: Function | None, text: str) -> LabelledSite | None:
    if function is None or len(function.returns) != 1:
        return None
    return LabelledSite(None, function.returns[0], f"`{function.name}` {text}")


def returned_by_module(rejected: RejectedCall) -> LabelledSite | None:
    hooked = registrations(rejected.facts, "hooked forward", rejected.site)
    return only_return(hooked[0][1] if hooked else None, "returns its result here")


def registered(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the registration of the hook that ran last before the rejected call."""
    callback = last_run_that_returned(rejected.facts, rejected.index)
    return None if callback is None else _registered(callback.registration, callback.function)


def _registered(registration: Registration, function: Function) -> LabelledSite:
    return LabelledSite(None, registration.site, f"`{function.name}` is registered here: a {registration.kind}")


def registered_before(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the earlier backward hook of a module that rejected a second one."""
    here = registrations(rejected.facts, "", rejected.site)
    target = here[0][0].target if here else None
    for known, function in registrations(rejected.facts, "", None, target):
        if known.site != rejected.site and known.target == target and known.kind.startswith(BACKWARD_HOOKS):
            return _registered(known, function)
    return None


def registered_on_called(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the registration of the backward hook of the module that the rejected line calls."""
    hooked = registrations(rejected.facts, "hooked forward", rejected.site)
    for known, function in registrations(rejected.facts, "", None, hooked[0][0].target) if hooked else ():
        if known.kind.startswith(BACKWARD_HOOKS):
            return _registered(known, function)
    for passed, _ in registrations(rejected.facts, "passed on", rejected.site):
        for known, function in registrations(rejected.facts, ""):
            if known.function == passed.function and known.kind.startswith(BACKWARD_HOOKS):
                return _registered(known, function)
    return None


def registered_and_running(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the registration of the module's hook that runs next after a warning of the backward pass."""
    callback = _running(rejected)
    return None if callback is None else _registered(callback.registration, callback.function)


def _running(rejected: RejectedCall) -> CallbackRun | None:
    after = runs_after(rejected.facts, rejected.index)
    return next((c for c in after if c.registration.kind.startswith(BACKWARD_HOOKS)), None)


def defined(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the definition of the function that autograd called last."""
    callback = last_run_that_returned(rejected.facts, rejected.index)
    return None if callback is None else defined_at(callback.function)


def rejected_function(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the definition of the function that autograd could not call with its arguments."""
    callback = next(iter(runs_before(rejected.facts, rejected.index)), None)
    return None if callback is None or callback.run.ended != "refused" else takes(callback.function)


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


def written_by_hook(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the last change in place of a hook's arguments before the hook returned."""
    callback = last_run_that_returned(rejected.facts, rejected.index)
    if callback is None:
        return None
    counters = {rejected.facts.tensor(number).counter for number in callback.run.given}
    for call in reversed(rejected.facts.calls):
        moved = [w for w in call.writes if rejected.facts.tensor(w.tensor).counter in counters]
        if call.index < callback.run.index and moved:
            text = "writes into the gradient that it was given"
            return LabelledSite(None, call.site, text)
    return None


def calling(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the backward pass that called the callback."""
    callback = last_run_that_returned(rejected.facts, rejected.index)
    name = "it" if callback is None else f"`{callback.function.name}`"
    return LabelledSite(
        None, rejected.site, f"{op_text(rejected.op)} runs {name}" if rejected.op else f"autograd runs {name}"
    )


def saved_tensor_hooks(rejected: RejectedCall) -> LabelledSite | None:
    callback = last_run_that_returned(rejected.facts, rejected.index)
    return (
        None
        if callback is None
        else LabelledSite(None, callback.registration.site, "the saved-tensor hooks begin here")
    )


def saved(rejected: RejectedCall) -> LabelledSite | None:
    return LabelledSite(None, rejected.site, f"{op_text(rejected.op)} saves a tensor for backward")


def words(rejected: RejectedCall) -> dict[str, str]:
    """Returns the template fields of a callback: {function}, what it was {given}, and what it {returned}."""
    callback = last_run_that_returned(rejected.facts, rejected.index)
    if callback is None:
        return {"function": "the function", "given": "a tensor", "returned": "something else"}
    facts = rejected.facts
    return {
        "function": f"`{callback.function.name}`",
        "given": first_argument_text(facts, callback),
        "returned": returned_text(facts, callback),
    }


def not_callable(rejected: RejectedCall) -> bool:
    """Returns whether the engine could not call a function with the arguments of its kind."""
    return rejected_function(rejected) is not None


ROLES: dict[str, Callable[[RejectedCall], LabelledSite | None]] = {
    "returned_here": returned,
    "returned_here:module": returned_by_module,
    "hook_registered_here": registered,
    "hook_registered_here:before": registered_before,
    "hook_registered_here:module": registered_on_called,
    "function_defined_here": defined,
    "function_defined_here:rejected": rejected_function,
    "modified_here:input": tensors.modified,
    "modified_here:hook": written_by_hook,
    "needed_here:calling": calling,
    "mode_entered_here:hook": saved_tensor_hooks,
    "saved_here:hook": saved,
    "called_here:failing": tensors.failing_call,
}
