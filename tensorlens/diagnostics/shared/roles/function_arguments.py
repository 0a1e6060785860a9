"""Finds the lines of a function that the program passed to `jacobian`, `gradcheck` and the like."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tensorlens.analysis.user_callbacks import call_running, runs_before
from tensorlens.diagnostics.shared.rejected_call import LabelledSite, RejectedCall
from tensorlens.diagnostics.shared.roles.hooks import only_return
from tensorlens.records.callbacks import Function
from tensorlens.records.model import Call

_EXACT = ("float64", "complex128")


def _registered(rejected: RejectedCall, kind: str) -> Function | None:
    """Finds the function registered last at the rejected line as `kind`."""
    known = rejected.facts.trace.callbacks
    registered = [r for r in known.registrations if r.site == rejected.site and r.kind.startswith(kind)]
    return known.functions[registered[-1].function] if registered else None


def given_to(rejected: RejectedCall) -> str:
    """Returns the name of the torch function to which the program passed its function, such as `hessian`."""
    known = rejected.facts.trace.callbacks.registrations
    kinds = [r.kind for r in known if r.site == rejected.site and r.kind.startswith("given to ")]
    return kinds[-1].removeprefix("given to ") if kinds else rejected.op.rpartition(".")[2]


def defined(rejected: RejectedCall) -> LabelledSite | None:
    function = _registered(rejected, "given to ")
    if function is None or function.defined is None:
        return None
    return LabelledSite(None, function.defined, f"`{function.name}` is defined here")


def returned(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the cause of a failed check.

    It is an input of low precision, else the `return` of a custom `backward`, else that of the checked function.
    """
    for access in rejected.inputs:
        tensor, state = rejected.facts.tensor(access.tensor), rejected.facts.state(access.tensor, rejected.index)
        if state is not None and state.requires_grad and tensor.dtype not in _EXACT:
            made = rejected.facts.first_use(access.tensor)
            text = f"{rejected.name(access.tensor)} is {tensor.dtype}: too coarse for small steps"
            return LabelledSite(access.tensor, None if made is None else made.site, text)
    function = _registered(rejected, "backward") or _backward_within(rejected) or _registered(rejected, "given to ")
    return only_return(function, "returns its result here")


def _backward_within(rejected: RejectedCall) -> Function | None:
    """Finds the custom `backward` that ran last, if the rejected line called its Function, directly or not."""
    sites = rejected.facts.trace.sites
    for callback in runs_before(rejected.facts, rejected.index):
        call = call_running(rejected.facts, callback, rejected.index)
        caller = None if call is None else sites[call.site].caller
        while caller is not None and caller != rejected.site:
            caller = sites[caller].caller
        if callback.registration.kind == "backward" and caller is not None:
            return callback.function
    return None


def returned_by_function(rejected: RejectedCall) -> LabelledSite | None:
    function = _registered(rejected, "given to ")
    return only_return(function, "returns its result here")


def left_graph(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the last call in the function whose input required grad and whose result does not."""
    for call in _within(rejected):
        lost = any(rejected.facts.requires_grad(a.tensor, call.index) for a in call.inputs)
        if lost and not any(rejected.facts.requires_grad(a.tensor, call.index) for a in call.outputs):
            return LabelledSite(None, call.site, "the gradient stops here")
    return None


def _within(rejected: RejectedCall) -> Iterator[Call]:
    """Yields the calls that functions called at the rejected line made, the latest first."""
    sites = rejected.facts.trace.sites
    for call in reversed(rejected.facts.calls):
        if call.index < rejected.index and sites[call.site].caller == rejected.site:
            yield call


def called(rejected: RejectedCall) -> LabelledSite:
    return LabelledSite(None, rejected.site, f"`{given_to(rejected)}` is called here")


def value(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the value that is not a tensor: one that the rejected line reads, else the result of the function."""
    plain = [value for value in rejected.values if value.site is not None]
    if plain:
        return LabelledSite(None, plain[-1].site, f"`{plain[-1].name}` is a `{plain[-1].type}`")
    return left_graph(rejected) or returned_by_function(rejected)


def vector(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the last tensor of the rejected call. If the call itself made it as a copy, it finds the original."""
    facts = rejected.facts
    number = rejected.inputs[-1].tensor if rejected.inputs else None
    made = None if number is None else facts.first_use(number)
    while made is not None and made.site == rejected.site and made.inputs:
        number = made.inputs[0].tensor
        made = facts.first_use(number)
    return None if made is None else LabelledSite(number, made.site, f"{rejected.name(number)} is made here")


ROLES: dict[str, Callable[[RejectedCall], LabelledSite | None]] = {
    "function_defined_here:given": defined,
    "returned_here:checked": returned,
    "returned_here:given": returned_by_function,
    "graph_cut_here:given": left_graph,
    "called_here:given": called,
    "value_made_here:given": value,
    "value_made_here:vector": vector,
}
