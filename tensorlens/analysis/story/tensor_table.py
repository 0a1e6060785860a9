"""The tensor table: what autograd said of each named tensor when the run ended."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tensorlens.analysis.naming.names import Names
from tensorlens.records.model import Backward, Call, Event, State, Trace

MAX_ROWS = 24
MAX_SHARES = 3
_SET = "set"  # a gradient whose values were not looked at


@dataclass(frozen=True, slots=True)
class TensorRow:
    """One tensor, or several of one module, as text."""

    name: str
    storage: str = ""
    shares: str = ""
    requires_grad: str = ""
    grad_fn: str = ""
    leaf: str = ""
    version: str = ""
    grad: str = ""


@dataclass(frozen=True, slots=True)
class TensorTable:
    """The rows, how much was left out, and why they are older than the end of the run ("": they are not)."""

    rows: tuple[TensorRow, ...]
    more: int
    unnamed: int
    stale: str


def tensor_table(trace: Trace, names: Names) -> TensorTable:
    """Named tensors in the order of their first appearance; the parameters of a big module in one row."""
    states = last_states(trace)
    named = [
        state
        for state in states
        if names.all_names(state.tensor) or (not trace.end.states and names.is_named(state.tensor))
    ]
    if not trace.end.states:
        named = list({names.display_name(state.tensor): state for state in named}.values())
    named.sort(key=lambda state: (_nested(names, state.tensor), state.tensor))
    groups = _groups(trace, names, named)
    rows: list[TensorRow] = []
    for group in groups[:MAX_ROWS]:
        rows.append(_row(trace, names, group[0]) if len(group) == 1 else _group_row(names, group))
    return TensorTable(
        tuple(rows),
        more=max(len(groups) - MAX_ROWS, 0),
        unnamed=len(states) - len(named),
        stale=_stale(trace),
    )


def _stale(trace: Trace) -> str:
    if trace.end.states:
        return ""
    cut_short = trace.script.outcome in ("killed", "timeout")
    return "the run never came to its end" if cut_short else "no tensor was left at the end"


def last_states(trace: Trace) -> list[State]:
    """The states at the end; where no tensor was left then, or the run was cut short, the last ones recorded."""
    if trace.end.states:
        return list(trace.end.states)
    states: dict[int, State] = {}
    gradients = _Gradients()
    for event in trace.events:
        if isinstance(event, Call):
            states.update({state.tensor: state for state in event.states})
            for write in event.writes:
                if write.tensor in states:
                    states[write.tensor] = replace(states[write.tensor], version=write.after)
        gradients.go_on(event)
    return [replace(states[tensor], grad=gradients.texts.get(tensor)) for tensor in sorted(states)]


class _Gradients:
    """What is known of each tensor's `.grad` after some events: its values as last seen, or that it is set."""

    def __init__(self) -> None:
        self.texts: dict[int, str | None] = {}
        self._owners: dict[int, int] = {}  # the tensor that `.grad` holds -> whose it is

    def go_on(self, event: Event) -> None:
        if isinstance(event, Backward):
            for gradient in event.gradients:
                self.texts[gradient.tensor] = gradient.after
                if gradient.held is not None:
                    self._owners[gradient.held] = gradient.tensor
        elif isinstance(event, Call):
            for write in event.writes:
                owner = self._owners.get(write.tensor)
                if owner is not None and self.texts.get(owner):
                    self.texts[owner] = _SET
            if event.op.endswith(".grad.__set__") and event.inputs:
                given = [access.tensor for access in event.inputs[1:]]
                self.texts[event.inputs[0].tensor] = _SET if given else None
                self._owners.update(dict.fromkeys(given, event.inputs[0].tensor))


def _row(trace: Trace, names: Names, state: State) -> TensorRow:
    tensor = trace.tensors[state.tensor]
    aliases = names.all_names(state.tensor)
    return TensorRow(
        name=", ".join(aliases[:MAX_SHARES]) or names.display_name(state.tensor),
        storage=names.mark(state.tensor) or "none",
        shares=_sharers(trace, names, state),
        requires_grad="yes" if state.requires_grad else "no",
        grad_fn=state.grad_fn or "",
        leaf="yes" if state.is_leaf else "no",
        version="none" if state.version is None else str(state.version),
        grad=_grad(state) if tensor.dtype else "",
    )


def _grad(state: State) -> str:
    if state.grad is not None:
        return state.grad
    return "None" if state.is_leaf or state.retains_grad else "not kept"


def _sharers(trace: Trace, names: Names, state: State) -> str:
    storage = names.storage_of(state.tensor)
    if storage is None:
        return ""
    others = [other.tensor for other in last_states(trace) if other.tensor != state.tensor]
    named = [
        names.display_name(other) for other in others if names.all_names(other) and names.storage_of(other) == storage
    ]
    rest = len(named) - MAX_SHARES
    return ", ".join(named[:MAX_SHARES]) + (f" and {rest} more" if rest > 0 else "")


def _nested(names: Names, tensor: int) -> bool:
    """Whether only an attribute or item reaches the tensor: those come after the script's own variables."""
    name = names.display_name(tensor)
    return "." in name or "[" in name


def _groups(trace: Trace, names: Names, states: list[State]) -> list[list[State]]:
    """Single tensors, and the parameters of one object together where they'd fill the table."""
    if len(states) <= MAX_ROWS:
        return [[state] for state in states]
    groups: dict[tuple[str, str], list[State]] = defaultdict(list)
    for state in states:
        name = names.display_name(state.tensor)
        nested = _nested(names, state.tensor)
        groups[
            name.split(".")[0].split("[")[0] if nested else name, str(state.requires_grad) if nested else name
        ].append(state)
    return list(groups.values())


def _group_row(names: Names, states: list[State]) -> TensorRow:
    root = names.display_name(states[0].tensor).split(".")[0].split("[")[0]
    graphs = {state.grad_fn for state in states if state.grad_fn}
    storages = {names.mark(state.tensor) for state in states}
    with_grad = sum(state.grad is not None for state in states)
    return TensorRow(
        name=f"{root} ({len(states)} tensors)",
        storage=f"{len(storages)} blocks",
        requires_grad="yes" if states[0].requires_grad else "no",
        grad_fn=graphs.pop() if len(graphs) == 1 else f"{len(graphs)} kinds" if graphs else "",
        leaf=_common("yes" if state.is_leaf else "no" for state in states),
        version=_range([state.version for state in states if state.version is not None]),
        grad=f"{with_grad} of {len(states)} set" if with_grad else "None",
    )


def _common(values: Iterable[str]) -> str:
    found = set(values)
    return found.pop() if len(found) == 1 else "mixed"


def _range(versions: list[int]) -> str:
    if not versions:
        return "none"
    low, high = min(versions), max(versions)
    return str(low) if low == high else f"{low}-{high}"
