"""Makes the tensor table: the autograd state of each named tensor when the run ended."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable
from dataclasses import dataclass

from tensorlens.analysis.naming.names import Names
from tensorlens.analysis.states import last_states
from tensorlens.analysis.story.line_events import count_text
from tensorlens.records.limits import LISTED_ITEMS, LISTED_STATES
from tensorlens.records.model import State, Trace

MAX_ROWS = 24
MAX_SHARES = 3


@dataclass(frozen=True, slots=True)
class TensorRow:
    """A row of the table, as text: one tensor, or the tensors of one module."""

    name: str
    storage: str = ""
    shares: str = ""
    requires_grad: str = ""
    grad_fn: str = ""
    leaf: str = ""
    version: str = ""
    grad: str = ""
    tensors: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TensorTable:
    """The rows, and what they do not show."""

    rows: tuple[TensorRow, ...]
    more: int  # rows left out
    unnamed: int  # tensors without a name
    stale: str  # why the rows show states from before the end of the run; "" if they do not


def tensor_table(trace: Trace, names: Names, only: Container[int] | None = None, most: int = MAX_ROWS) -> TensorTable:
    """Makes the table of the named tensors; with `only`, of the chosen ones among them.

    The script's own variables come first, then what is nested in them, each in the order in which the run met the
    tensors. If there are more than `most` rows, the tensors of one object share a row.
    """
    states = [state for state in last_states(trace) if only is None or state.tensor in only]
    named = [
        state
        for state in states
        if names.all_names(state.tensor) or (not trace.end.states and names.is_named(state.tensor))
    ]
    if not trace.end.states:
        named = list({names.display_name(state.tensor): state for state in named}.values())
    named.sort(key=lambda state: (_nested(names, state.tensor), state.tensor))
    groups = _groups(names, named, most)
    rows: list[TensorRow] = []
    for group in groups[:most]:
        rows.append(_row(trace, names, group[0]) if len(group) == 1 else _group_row(trace, names, group))
    return TensorTable(
        tuple(rows),
        more=max(len(groups) - most, 0),
        unnamed=len(states) - len(named),
        stale=_stale(trace),
    )


def _stale(trace: Trace) -> str:
    if trace.end.states:
        return ""
    cut_short = trace.script.outcome in ("killed", "timeout")
    return "the run did not reach its end" if cut_short else "no tensor existed any more at the end"


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
        tensors=(state.tensor,),
    )


def _grad(state: State) -> str:
    if state.grad is not None:
        return state.grad
    return "None" if state.is_leaf or state.retains_grad else "not a leaf"


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
    """Returns whether the tensor has no variable of its own: an attribute or an item holds it."""
    name = names.display_name(tensor)
    return "." in name or "[" in name


def _groups(names: Names, states: list[State], most: int) -> list[list[State]]:
    """Groups the tensors of one object, if there are too many for single rows."""
    if len(states) <= most:
        return [[state] for state in states]
    groups: dict[tuple[str, str], list[State]] = defaultdict(list)
    for state in states:
        name = names.display_name(state.tensor)
        nested = _nested(names, state.tensor)
        key = (_root(name), str(state.requires_grad)) if nested else (name, name)
        groups[key].append(state)
    return list(groups.values())


def _group_row(trace: Trace, names: Names, states: list[State]) -> TensorRow:
    root = _root(names.display_name(states[0].tensor))
    graphs = {state.grad_fn for state in states if state.grad_fn}
    storages = {names.mark(state.tensor) for state in states}
    with_grad = sum(state.grad is not None for state in states)
    return TensorRow(
        name=f"{len(states)} tensors of {root}"
        if _may_lack(trace, names, states)
        else f"{root} ({len(states)} tensors)",
        storage=count_text(len(storages), "storage"),
        requires_grad="yes" if states[0].requires_grad else "no",
        grad_fn=graphs.pop() if len(graphs) == 1 else f"{len(graphs)} kinds" if graphs else "",
        leaf=_common("yes" if state.is_leaf else "no" for state in states),
        version=_range([state.version for state in states if state.version is not None]),
        grad=f"{with_grad} of {len(states)} set" if with_grad else _common(map(_grad, states)),
        tensors=tuple(state.tensor for state in states),
    )


def _may_lack(trace: Trace, names: Names, states: list[State]) -> bool:
    """Returns whether the object may hold more tensors: the trace has only the first items of a list."""
    items = sum(names.display_name(state.tensor).endswith("]") for state in states)
    return items >= LISTED_ITEMS or len(trace.end.states) >= LISTED_STATES


def _root(name: str) -> str:
    """Returns the variable that a name begins with: `model` of `model.fc.weight`."""
    return name.split(".")[0].split("[")[0]


def _common(values: Iterable[str]) -> str:
    distinct = set(values)
    return distinct.pop() if len(distinct) == 1 else "mixed"


def _range(versions: list[int]) -> str:
    if not versions:
        return "none"
    low, high = min(versions), max(versions)
    return str(low) if low == high else f"{low}-{high}"
