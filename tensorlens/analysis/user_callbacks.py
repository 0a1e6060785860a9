"""Questions about the user's functions that autograd calls back: which of them a refusal is about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.naming.names import shape_text
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.callbacks import Function, Registration, Run
from tensorlens.records.model import Backward, Call


@dataclass(frozen=True, slots=True)
class CallbackRun:
    """A run of a user's function, with where it was registered and what it is."""

    run: Run
    registration: Registration
    function: Function

    @property
    def returned(self) -> int | None:
        """The site of the statement that handed back the value."""
        returns = self.function.returns
        return self.run.returned if self.run.returned is not None or len(returns) != 1 else returns[0]


def runs_before(facts: TraceIndex, index: int) -> Iterator[CallbackRun]:
    """The runs that ended before event `index`, the latest first; of a failed backward pass only those inside it."""
    event = facts.event(index)
    started = event.started if isinstance(event, Backward) and event.failed else 0
    for run in reversed(facts.trace.callbacks.runs):
        if started <= run.index <= index:
            yield _callback(facts, run)


def runs_after(facts: TraceIndex, index: int) -> Iterator[CallbackRun]:
    """The runs that ended after event `index`, in order."""
    return (_callback(facts, run) for run in facts.trace.callbacks.runs if run.index > index)


def last_run_that_returned(facts: TraceIndex, index: int) -> CallbackRun | None:
    """The last callback before a refusal that handed something back, or that could not."""
    return next((c for c in runs_before(facts, index) if not _handed_nothing(c.run)), None)


def _handed_nothing(run: Run) -> bool:
    return run.ended == "returned" and all(value.type == "NoneType" for value in run.values)


def _callback(facts: TraceIndex, run: Run) -> CallbackRun:
    registration = facts.trace.callbacks.registrations[run.registration]
    return CallbackRun(run, registration, facts.trace.callbacks.functions[registration.function])


def registrations(
    facts: TraceIndex, kind: str, site: int | None = None, target: int | None = None
) -> list[tuple[Registration, Function]]:
    """The registrations whose kind begins so, the latest first; of one site or target where one is asked for."""
    found = []
    for known in reversed(facts.trace.callbacks.registrations):
        if known.kind.startswith(kind) and site in (None, known.site) and target in (None, known.target):
            found.append((known, facts.trace.callbacks.functions[known.function]))
    return found


def method_at(facts: TraceIndex, name: str, site: int | None, of_class: str = "") -> Function | None:
    """The method of the custom Function that is called at a site."""
    for _, function in [] if site is None else registrations(facts, name, site):
        if not of_class or function.name.rpartition(".")[0].endswith(of_class):
            return function
    return None


def class_at(facts: TraceIndex, site: int | None, name: str = "") -> Function | None:
    """The class of the custom Function that is called at a site."""
    found = [] if site is None else registrations(facts, "class", site)
    return next((function for _, function in found if name in ("", function.name)), None)


def custom_operator(facts: TraceIndex, op: str) -> Function | None:
    """The user's implementation of a custom operator: of `tl.sine` for `tl.sine.default`."""
    for known, function in registrations(facts, "operator "):
        name = known.kind.removeprefix("operator ")
        if op == name or op.startswith(f"{name}."):
            return function
    return None


def call_running(facts: TraceIndex, callback: CallbackRun, before: int) -> Call | None:
    """The call whose node ran the callback."""
    return facts.call_of_node(callback.run.node, before)


def returned_text(facts: TraceIndex, callback: CallbackRun) -> str:
    """What was handed back: "shape 2x3, float32", "a `float`"."""
    told = []
    for value in callback.run.values:
        plain = "None" if value.type == "NoneType" else f"a `{value.type}`"
        told.append(plain if value.tensor is None else _tensor_text(facts, value.tensor))
    return " and ".join(told) or "nothing"


def first_argument_text(facts: TraceIndex, callback: CallbackRun) -> str:
    """The first tensor that it was given."""
    given = callback.run.given
    return _tensor_text(facts, given[0]) if given else "nothing"


def _tensor_text(facts: TraceIndex, number: int) -> str:
    tensor = facts.tensor(number)
    device = "" if tensor.device == "cpu" else f" on {tensor.device}"
    return f"a tensor of shape {shape_text(tensor)}, {tensor.dtype}{device}"
