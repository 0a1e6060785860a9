"""Where a new tensor came from, in words: `from a by SigmoidBackward0`, `alias of out, outside the graph`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tensorlens.analysis.ledger import Ledger
from tensorlens.model import Access, Backward, Call, State, Trace

MANY = 3


class Visit:
    """The calls of one visit to a line: what they made, and what of that they used up themselves."""

    def __init__(self, trace: Trace, calls: Sequence[Call], backwards: Sequence[Backward]) -> None:
        self.made: dict[int, Call] = {}
        self.consumed: set[int] = set()
        self.states: dict[int, State] = {}
        for call in calls:
            self.consumed |= tensors_of(call.inputs) & self.made.keys()
            self.states.update({state.tensor: state for state in call.states})
            made = (access.tensor for access in call.outputs)
            self.made.update({tensor: call for tensor in made if trace.tensors[tensor].created_by == call.index})
        for backward in backwards:
            self.consumed |= tensors_of(backward.roots)


@dataclass(frozen=True, slots=True)
class _Sources:
    """What a tensor was computed from (by the name that the line uses), and the nodes on the way, the last first."""

    names: dict[int, str]
    grad_fns: tuple[str, ...]


def origin(ledger: Ledger, call: Call, state: State, visit: Visit) -> str:
    """How `call` made the tensor of `state`, which is its state at the end of the visit."""
    tensor = ledger.trace.tensors[state.tensor]
    sources = _sources(ledger, call, visit)
    if tensor.type == "Parameter" and state.is_leaf:
        return "new parameter" + (", requires grad" if state.requires_grad else ", frozen")
    if call.op.endswith(("from_numpy", "frombuffer")):
        return "new, shares the memory of a NumPy array"
    shared = [source for source in sources.names if _same_memory(ledger, source, tensor.storage)]
    if shared and (tensor.base is not None or state.grad_fn is None):
        return _sharing(ledger, state, sources, shared)
    if state.is_leaf and state.requires_grad:
        return "new leaf, requires grad"
    text = f"from {_from(ledger, sources.names)}" if sources.names else "new" if state.grad_fn is None else "made"
    if state.grad_fn is not None:
        return text + _by(sources.grad_fns)
    if sources.grad_fns:
        return f"{text}{_by(sources.grad_fns)}, outside the graph"
    dropped = call.mode != "grad" and any(map(ledger.requires_grad, sources.names))
    return text + (f", not recorded ({call.mode})" if dropped else ", no grad")


def _sharing(ledger: Ledger, state: State, sources: _Sources, shared: list[int]) -> str:
    of = listed(sources.names[source] for source in shared)
    if ledger.trace.tensors[state.tensor].base is not None:
        return f"view of {of}{_by(sources.grad_fns)}"
    cut = any(map(ledger.requires_grad, shared)) and not state.requires_grad
    return f"alias of {of}" + (", outside the graph" if cut else "")


def _sources(ledger: Ledger, call: Call, visit: Visit) -> _Sources:
    """Back from `call` to what the visit found or gave a name."""
    names: dict[int, str] = {}
    used: dict[int, int] = {}  # tensor -> the first call that read it
    grad_fns: list[str] = []
    waiting, seen = [call], {call.index}
    while waiting:
        current = waiting.pop()
        made = tensors_of(current.outputs)
        grad_fns += [state.grad_fn for state in current.states if state.grad_fn and state.tensor in made][:1]
        for access in current.inputs:
            maker = visit.made.get(access.tensor)
            if maker is None or maker.index >= current.index or ledger.names.is_named(access.tensor):
                names[access.tensor] = ledger.names.of(access.tensor, current.index)
                used[access.tensor] = min(current.index, used.get(access.tensor, current.index))
            elif maker.index not in seen:
                seen.add(maker.index)
                waiting.append(maker)
    return _Sources({tensor: names[tensor] for tensor in sorted(names, key=used.__getitem__)}, tuple(grad_fns))


def _same_memory(ledger: Ledger, tensor: int, storage: int | None) -> bool:
    return storage is not None and ledger.storage(tensor) == storage


def _from(ledger: Ledger, names: dict[int, str]) -> str:
    """`x, 2 parameters`: what a module holds comes last, and what it has many of is counted."""
    parameters = [tensor for tensor in names if ledger.is_parameter(tensor)]
    others = [name for tensor, name in names.items() if tensor not in parameters]
    held = [name for name in others if "." in name and "(" not in name]
    own = [name for name in others if name not in held]
    counted = len(parameters) > (1 if others else MANY)
    if counted:  # said in any case: "and 1 more" would make one thing of all of them
        return listed([*own[: MANY - 1], f"{len(parameters)} parameters", *own[MANY - 1 :], *held])
    return listed([*own, *(names[tensor] for tensor in parameters), *held])


def _by(grad_fns: Sequence[str]) -> str:
    if not grad_fns:
        return ""
    if len(grad_fns) > MANY:
        return f" by {grad_fns[0]} and {len(grad_fns) - 1} before it"
    return " by " + ", ".join(reversed(grad_fns))


def listed(names: Iterable[str]) -> str:
    """The first few of the names, and how many more there are."""
    found = list(dict.fromkeys(names))
    rest = len(found) - MANY
    return ", ".join(found[:MANY]) + (f" and {rest} more" if rest > 0 else "")


def tensors_of(accesses: Iterable[Access]) -> set[int]:
    return {access.tensor for access in accesses}
