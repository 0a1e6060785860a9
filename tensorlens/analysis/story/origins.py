"""Where a new tensor came from, in words: `from a by SigmoidBackward0`, `alias of out, outside the graph`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tensorlens.analysis.story.running_state import RunningState
from tensorlens.records.model import Access, Backward, Call, State, Trace

MANY = 3


class VisitCalls:
    """The calls of one visit to a line: what they made, what of that they wrote into or used up themselves."""

    def __init__(self, trace: Trace, calls: Sequence[Call], backwards: Sequence[Backward]) -> None:
        self.made: dict[int, Call] = {}
        self.consumed: set[int] = set()
        self.written: dict[int, list[Call]] = {}  # tensor -> the calls that wrote it after it was made here
        self.states: dict[int, State] = {}
        self.sources: dict[tuple[int, str | None], _Sources] = {}  # by call and grad_fn: found once for many results
        for call in calls:
            self.consumed |= tensors_of(call.inputs) & self.made.keys()
            self.states.update({state.tensor: state for state in call.states})
            for write in call.writes:
                if write.tensor in self.made:
                    self.written.setdefault(write.tensor, []).append(call)
            made = (access.tensor for access in call.outputs)
            self.made.update({tensor: call for tensor in made if trace.tensors[tensor].created_by == call.index})
        for backward in backwards:
            self.consumed |= tensors_of(backward.roots)


@dataclass(frozen=True, slots=True)
class _Sources:
    """What a call computed its results from (by the name that the line uses), and the nodes on the way, the last
    first."""

    names: dict[int, str]
    grad_fns: tuple[str, ...]
    in_storage: dict[int, list[int]]  # the tensors in `names` by the storage that they lie in
    text: str  # `from a, b`; "" where there are none
    require_grad: bool  # whether one of them does
    in_graph: str  # which of the names backward reaches from the results, and which it does not


def origin(ledger: RunningState, call: Call, state: State, visit: VisitCalls) -> str:
    """How `call` made the tensor of `state`, which is its state at the end of the visit."""
    tensor = ledger.trace.tensors[state.tensor]
    key = call.index, state.grad_fn
    sources = visit.sources.get(key)
    if sources is None:
        sources = visit.sources[key] = _sources(ledger, call, state, visit)
    if tensor.type == "Parameter" and state.is_leaf:
        return "new parameter" + (", requires grad" if state.requires_grad else ", frozen")
    if call.op.endswith(("from_numpy", "frombuffer")):
        return "new, shares the memory of a NumPy array"
    shared = [] if tensor.storage is None else sources.in_storage.get(tensor.storage, [])
    if shared and (tensor.base is not None or state.grad_fn is None):
        return _sharing(ledger, state, sources, shared)
    if state.is_leaf and state.requires_grad:
        return "new leaf, requires grad"
    if state.grad_fn is not None:
        return sources.in_graph
    if state.requires_grad:  # by a node that could not be read
        return f"{sources.text or 'made'}, requires grad"
    if call.op.endswith("__deepcopy__") and sources.names:
        return f"a deep copy of {_from(ledger, sources.names)}, no grad"
    text = sources.text or "new"
    if sources.grad_fns:
        return f"{text}{_by(sources.grad_fns)}, outside the graph"
    dropped = call.mode != "grad" and sources.require_grad
    return text + (f", not recorded ({call.mode})" if dropped else ", no grad")


def _in_graph(ledger: RunningState, names: dict[int, str], leads_to: set[int], grad_fns: Sequence[str]) -> str:
    """`from a by AddBackward0; b is a constant`: which tensors backward reaches from here, and which it does not."""
    reached = {tensor: name for tensor, name in names.items() if tensor in leads_to}
    others = {tensor: name for tensor, name in names.items() if tensor not in leads_to}
    text = (f"from {_from(ledger, reached, bool(others))}" if reached else "made") + _by(grad_fns)
    if not others:
        return text
    return f"{text}; {_from(ledger, others)} {'is a constant' if len(others) == 1 else 'are constants'}"


def _sharing(ledger: RunningState, state: State, sources: _Sources, shared: list[int]) -> str:
    of = listed(sources.names[source] for source in shared)
    if ledger.trace.tensors[state.tensor].base is not None:
        return f"view of {of}{_by(sources.grad_fns)}"
    cut = any(map(ledger.requires_grad, shared)) and not state.requires_grad
    return f"alias of {of}" + (", outside the graph" if cut else "")


def _sources(ledger: RunningState, call: Call, state: State, visit: VisitCalls) -> _Sources:
    """Back from `call`, and from what wrote its result afterwards, to what the visit found or gave a name."""
    names: dict[int, str] = {}
    used: dict[int, int] = {}  # tensor -> the first call that read it
    reached: set[int] = set()  # the tensors to which a way of the graph leads
    grad_fns: dict[int, str] = {}  # by sequence number, or by call where that is not known (then below 0)
    results = {access.tensor for access in call.outputs if visit.made.get(access.tensor) is call}
    writers = [writer for tensor in results for writer in visit.written.get(tensor, ())]
    waiting = [(call, True), *((writer, True) for writer in dict.fromkeys(writers))]
    seen = {(each.index, leads) for each, leads in waiting}
    while waiting:
        current, leads = waiting.pop()
        made = tensors_of(current.outputs)
        states = [state] if current is call else [found for found in current.states if found.tensor in made]
        node = next((found for found in states if found.grad_fn), None)
        if node is not None and node.grad_fn is not None:
            number = -1 - current.index if node.node is None else node.node
            grad_fns.setdefault(number, node.grad_fn.rpartition("::")[2])
        for access in current.inputs:
            maker = visit.made.get(access.tensor)
            if access.tensor in results:
                continue
            goes_on = leads and _requires_grad(ledger, visit, access.tensor)
            if maker is None or maker.index >= current.index or _is_given(ledger, access.tensor, maker):
                names[access.tensor] = _source_name(ledger, current, access.tensor)
                used[access.tensor] = min(current.index, used.get(access.tensor, current.index))
                reached |= {access.tensor} if goes_on else set()
                continue
            # inside a custom function nothing is recorded, and yet the graph leads from its result to its inputs
            goes_on = goes_on or (leads and current.mode != "grad")
            if (maker.index, goes_on) not in seen:
                seen.add((maker.index, goes_on))
                waiting.append((maker, goes_on))
    ordered = {tensor: names[tensor] for tensor in sorted(names, key=used.__getitem__)}
    in_storage: dict[int, list[int]] = {}
    for tensor in ordered:
        storage = ledger.storage(tensor)
        if storage is not None:
            in_storage.setdefault(storage, []).append(tensor)
    text = f"from {_from(ledger, ordered)}" if ordered else ""
    requires_grad = any(map(ledger.requires_grad, ordered))
    nodes = tuple(grad_fns.values())
    in_graph = _in_graph(ledger, ordered, reached, nodes)
    return _Sources(ordered, nodes, in_storage, text, requires_grad, in_graph)


def _source_name(ledger: RunningState, call: Call, tensor: int) -> str:
    """The name of what `call` read; another one where the line gives that name to its result: `y = y.detach()`."""
    name = ledger.names.display_name(tensor, call.index)
    if name not in ledger.trace.sites[call.site].targets:
        return name
    return next((other for other in ledger.names.all_names(tensor) if other != name), name)


def _requires_grad(ledger: RunningState, visit: VisitCalls, tensor: int) -> bool:
    """Whether it may have required grad when the visit used it: before it or after it, or if no state is known."""
    before, after = ledger.state(tensor), visit.states.get(tensor)
    return any(state.requires_grad for state in (before, after) if state) or not (before or after)


def _is_given(ledger: RunningState, tensor: int, maker: Call) -> bool:
    """Whether a tensor has a name of its own, be it only `x.grad`: nothing computed that from `x` here."""
    return ledger.names.is_named(tensor) or maker.op.endswith(".grad.__get__")


def _from(ledger: RunningState, names: dict[int, str], more: bool = False) -> str:
    """`x, 2 parameters`: what a module holds comes last, and what it has many of is counted; `more`: other names
    follow."""
    parameters = [tensor for tensor in names if ledger.is_parameter(tensor)]
    others = [name for tensor, name in names.items() if not ledger.is_parameter(tensor)]
    held = [name for name in others if _is_held(name)]
    own = [name for name in others if not _is_held(name)]
    counted = len(parameters) > (1 if others or more else MANY)
    if counted:  # said in any case: "and 1 more" would make one thing of all of them
        return listed([*own[: MANY - 1], f"{len(parameters)} parameters", *own[MANY - 1 :], *held])
    return listed([*own, *(names[tensor] for tensor in parameters), *held])


def _is_held(name: str) -> bool:
    return "." in name and "(" not in name


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
