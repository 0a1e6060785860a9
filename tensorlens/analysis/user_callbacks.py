"""Finds the user functions that autograd called: hooks, and the methods of custom Functions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.naming.names import shape_text
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.callbacks import Function, Registration, Run
from tensorlens.records.model import Backward, Call


@dataclass(frozen=True, slots=True)
class CallbackRun:
    """A run of a user function, its registration and its definition."""

    run: Run
    registration: Registration
    function: Function

    @property
    def returned(self) -> int | None:
        """The site of the `return` statement that ended the run, or of the function's only one."""
        returns = self.function.returns
        return self.run.returned if self.run.returned is not None or len(returns) != 1 else returns[0]


def runs_before(facts: TraceIndex, index: int) -> Iterator[CallbackRun]:
    """Yields the runs that ended before event `index`, the latest first. For a failed backward: only those inside
    it."""
    event = facts.event(index)
    started = event.started if isinstance(event, Backward) and event.failed else 0
    for run in reversed(facts.trace.callbacks.runs):
        if started <= run.index <= index:
            yield _callback_run(facts, run)


def runs_after(facts: TraceIndex, index: int) -> Iterator[CallbackRun]:
    """Returns the runs that ended after event `index`, in order."""
    return (_callback_run(facts, run) for run in facts.trace.callbacks.runs if run.index > index)


def last_run_that_returned(facts: TraceIndex, index: int) -> CallbackRun | None:
    """Finds the last run before event `index` that returned something other than None, or raised."""
    return next((c for c in runs_before(facts, index) if not _returned_none(c.run)), None)


def _returned_none(run: Run) -> bool:
    return run.ended == "returned" and all(value.type == "NoneType" for value in run.values)


def _callback_run(facts: TraceIndex, run: Run) -> CallbackRun:
    registration = facts.trace.callbacks.registrations[run.registration]
    return CallbackRun(run, registration, facts.trace.callbacks.functions[registration.function])


def registrations(
    facts: TraceIndex, kind: str, site: int | None = None, target: int | None = None
) -> list[tuple[Registration, Function]]:
    """Returns the registrations whose kind begins with `kind`, the latest first.

    With `site` or `target`, only those at the site or on the target.
    """
    matching = []
    for known in reversed(facts.trace.callbacks.registrations):
        if known.kind.startswith(kind) and site in (None, known.site) and target in (None, known.target):
            matching.append((known, facts.trace.callbacks.functions[known.function]))
    return matching


def method_at(facts: TraceIndex, name: str, site: int | None, class_name: str = "") -> Function | None:
    """Finds a method of the custom Function that is called at a site."""
    for _, function in [] if site is None else registrations(facts, name, site):
        if not class_name or function.name.rpartition(".")[0].endswith(class_name):
            return function
    return None


def class_at(facts: TraceIndex, site: int | None, name: str = "") -> Function | None:
    """Finds the class of the custom Function that is called at a site."""
    classes = [] if site is None else registrations(facts, "class", site)
    return next((function for _, function in classes if name in ("", function.name)), None)


def custom_operator(facts: TraceIndex, op: str) -> Function | None:
    """Finds the user's implementation of a custom operator: that of `tl.sine` for `tl.sine.default`."""
    for known, function in registrations(facts, "operator "):
        name = known.kind.removeprefix("operator ")
        if op == name or op.startswith(f"{name}."):
            return function
    return None


def call_running(facts: TraceIndex, callback: CallbackRun, before: int) -> Call | None:
    """Finds the call whose node ran the callback."""
    return facts.call_of_node(callback.run.node, before)


def returned_text(facts: TraceIndex, callback: CallbackRun) -> str:
    """Describes the returned values: "a tensor of shape [2, 3], float32", "a `float`"."""
    texts = []
    for value in callback.run.values:
        plain = "None" if value.type == "NoneType" else f"a `{value.type}`"
        texts.append(plain if value.tensor is None else _tensor_text(facts, value.tensor))
    return " and ".join(texts) or "nothing"


def first_argument_text(facts: TraceIndex, callback: CallbackRun) -> str:
    """Describes the first tensor among the arguments."""
    arguments = callback.run.given
    return _tensor_text(facts, arguments[0]) if arguments else "nothing"


def _tensor_text(facts: TraceIndex, number: int) -> str:
    tensor = facts.tensor(number)
    device = "" if tensor.device == "cpu" else f" on {tensor.device}"
    return f"a tensor of shape {shape_text(tensor)}, {tensor.dtype}{device}"
