"""Says in words how a line made a tensor: `from a by SigmoidBackward0`, `same memory as out, detached`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tensorlens.analysis.story.line_events import MANY
from tensorlens.analysis.story.tensors_before import TensorsBefore
from tensorlens.records.model import Access, Backward, Call, State, Trace

_DETACHING = ("Tensor.detach", "Tensor.data.__get__", "torch.detach")


class VisitCalls:
    """Collects what the calls of one run of a line did: the tensors that they made, and the new ones that they used."""

    def __init__(self, trace: Trace, calls: Sequence[Call], backwards: Sequence[Backward]) -> None:
        self.made: dict[int, Call] = {}
        self.consumed: set[int] = set()  # the new tensors that another call of the run read
        self.written: dict[int, list[Call]] = {}  # new tensor -> the calls that wrote it later in the run
        self.states: dict[int, State] = {}  # after the run
        self.sources: dict[tuple[int, str | None], _Sources] = {}  # by call and grad_fn: shared by many results
        for call in calls:
            self.consumed |= tensors_of(call.inputs) & self.made.keys()
            self.states.update({state.tensor: state for state in call.states})
            for write in call.writes:
                if write.tensor in self.made:
                    self.written.setdefault(write.tensor, []).append(call)
            if call.op.endswith(".grad.__get__"):
                continue  # backward made the gradient, even if nothing named it before
            outputs = (access.tensor for access in call.outputs)
            self.made.update({tensor: call for tensor in outputs if trace.tensors[tensor].created_by == call.index})
        for backward in backwards:
            self.consumed |= tensors_of(backward.roots)


@dataclass(frozen=True, slots=True)
class _Sources:
    """The tensors that a call computed its results from, and the names of the nodes between them, the last first."""

    names: dict[int, str]
    grad_fns: tuple[str, ...]
    in_storage: dict[int, list[int]]  # storage -> tensors in `names`
    text: str  # "from a, b"; "" for none
    require_grad: bool  # whether one of them requires grad
    in_graph: str  # the phrase for a recorded result: "from a by AddBackward0; b enters as a constant"


def origin(before: TensorsBefore, call: Call, state: State, visit: VisitCalls) -> str:
    """Puts into words how `call` made the tensor of `state`. `state` is the one after the run of the line."""
    tensor = before.trace.tensors[state.tensor]
    key = call.index, state.grad_fn
    sources = visit.sources.get(key)
    if sources is None:
        sources = visit.sources[key] = _sources(before, call, state, visit)
    if tensor.type == "Parameter" and state.is_leaf:
        return "new parameter" + (", requires grad" if state.requires_grad else ", frozen")
    if call.op.endswith(("from_numpy", "frombuffer")):
        return "new, shares the memory of a NumPy array"
    shared = [] if tensor.storage is None else sources.in_storage.get(tensor.storage, [])
    if shared and (tensor.base is not None or state.grad_fn is None):
        return _alias_text(before, call, state, sources, shared)
    if state.is_leaf and state.requires_grad:
        return "new leaf, requires grad"
    if state.grad_fn is not None:
        return sources.in_graph
    if state.requires_grad:  # its node could not be read
        return f"{sources.text or 'new'}, requires grad"
    if call.op.endswith("__deepcopy__") and call.inputs:
        return f"a deep copy of {_source_name(before, call, call.inputs[0].tensor)}, requires no grad"
    return (sources.text or "new") + _without_grad(call, sources.require_grad or bool(sources.grad_fns))


def _without_grad(call: Call, is_cut: bool) -> str:
    """Returns why a result requires no grad. `is_cut`: it was computed from a tensor that requires grad."""
    if is_cut and call.op in _DETACHING:
        return ", detached"
    return ", not recorded: requires no grad" if is_cut and call.mode != "grad" else ", requires no grad"


def _alias_text(before: TensorsBefore, call: Call, state: State, sources: _Sources, shared: list[int]) -> str:
    names = listed(sources.names[source] for source in shared)
    is_cut = any(map(before.requires_grad, shared)) and not state.requires_grad
    ending = _without_grad(call, True) if is_cut else ""
    if before.trace.tensors[state.tensor].base is not None:
        return f"view of {names}" + (ending or _by(sources.grad_fns))
    return f"same memory as {names}{ending}"


def _graph_text(before: TensorsBefore, names: dict[int, str], reached: set[int], grad_fns: Sequence[str]) -> str:
    """Returns "from a by AddBackward0; b enters as a constant": backward reaches `a` from the result, and not `b`."""
    reached_names = {tensor: name for tensor, name in names.items() if tensor in reached}
    others = {tensor: name for tensor, name in names.items() if tensor not in reached}
    text = (f"from {_joined(before, reached_names, bool(others))}" if reached_names else "new") + _by(grad_fns)
    if not others:
        return text
    return f"{text}; {_joined(before, others)} {'enters as a constant' if len(others) == 1 else 'enter as constants'}"


# --- the search for sources ------------------------------------------------------------------------------------------


class _Search:
    """Follows a result back through the calls of one run of a line, to tensors that have a name or were made before."""

    def __init__(self, before: TensorsBefore, call: Call, state: State, visit: VisitCalls) -> None:
        self.names: dict[int, str] = {}
        self.reached: set[int] = set()  # the sources that backward reaches from the result
        self.grad_fns: dict[int, str] = {}  # by sequence number; if that is not known, by the call as a negative number
        self.first_read: dict[int, int] = {}  # source -> the first call that read it
        self._before = before
        self._call = call
        self._state = state
        self._visit = visit
        self._results = {access.tensor for access in call.outputs if visit.made.get(access.tensor) is call}
        self._run()

    def _run(self) -> None:
        writers = [writer for tensor in self._results for writer in self._visit.written.get(tensor, ())]
        waiting = [(self._call, True), *((writer, True) for writer in dict.fromkeys(writers))]
        seen = {(call.index, in_graph) for call, in_graph in waiting}
        while waiting:
            call, in_graph = waiting.pop()
            self._add_node(call)
            for access in call.inputs:
                if access.tensor in self._results:
                    continue
                maker = self._visit.made.get(access.tensor)
                leads_on = in_graph and self._may_require_grad(access.tensor)
                if maker is None or maker.index >= call.index or self._is_source(access.tensor):
                    self._add_source(access.tensor, call, leads_on)
                    continue
                # nothing is recorded inside a custom Function, and yet its result's node leads to its inputs
                leads_on = leads_on or (in_graph and call.mode != "grad")
                if (maker.index, leads_on) not in seen:
                    seen.add((maker.index, leads_on))
                    waiting.append((maker, leads_on))

    def _add_node(self, call: Call) -> None:
        outputs = tensors_of(call.outputs)
        states = [self._state] if call is self._call else [each for each in call.states if each.tensor in outputs]
        state = next((each for each in states if each.grad_fn), None)
        if state is not None and state.grad_fn is not None:
            number = -1 - call.index if state.node is None else state.node
            self.grad_fns.setdefault(number, node_name(state.grad_fn))

    def _add_source(self, tensor: int, call: Call, in_graph: bool) -> None:
        self.names[tensor] = _source_name(self._before, call, tensor)
        self.first_read[tensor] = min(call.index, self.first_read.get(tensor, call.index))
        if in_graph:
            self.reached.add(tensor)

    def _may_require_grad(self, tensor: int) -> bool:
        """Returns whether the tensor required grad before or after the run, or no state of it is known."""
        states = [state for state in (self._before.state(tensor), self._visit.states.get(tensor)) if state]
        return any(state.requires_grad for state in states) or not states

    def _is_source(self, tensor: int) -> bool:
        """Returns whether the search ends at a tensor made in the run: it has a name of its own."""
        return self._before.names.is_named(tensor)


def _sources(before: TensorsBefore, call: Call, state: State, visit: VisitCalls) -> _Sources:
    search = _Search(before, call, state, visit)
    names = {tensor: search.names[tensor] for tensor in sorted(search.names, key=search.first_read.__getitem__)}
    in_storage: dict[int, list[int]] = defaultdict(list)
    for tensor in names:
        storage = before.storage(tensor)
        if storage is not None:
            in_storage[storage].append(tensor)
    grad_fns = tuple(search.grad_fns.values())
    return _Sources(
        names,
        grad_fns,
        in_storage,
        text=f"from {_joined(before, names)}" if names else "",
        require_grad=any(map(before.requires_grad, names)),
        in_graph=_graph_text(before, names, search.reached, grad_fns),
    )


def _source_name(before: TensorsBefore, call: Call, tensor: int) -> str:
    """Returns the name of an input of `call`. If the line gives that name to its result, `y = y.detach()`, it takes
    another."""
    name = before.current.described(tensor, call.index)
    if name not in before.trace.sites[call.site].targets:
        return name
    others = (other for other in before.names.all_names(tensor) if before.current.refers(other, tensor, call.index))
    return next((other for other in others if other != name), name)


# --- lists of names --------------------------------------------------------------------------------------------------


def _joined(before: TensorsBefore, names: dict[int, str], more: bool = False) -> str:
    """Joins names: variables first, attributes last, many parameters as their number. `more`: other names follow."""
    parameters = [tensor for tensor in names if before.is_parameter(tensor)]
    others = [name for tensor, name in names.items() if not before.is_parameter(tensor)]
    attributes = [name for name in others if _is_attribute(name)]
    variables = [name for name in others if not _is_attribute(name)]
    counted = len(parameters) > (1 if others or more else MANY)
    if counted:  # before the limit of `listed`, whose "and 1 more" would stand for all parameters
        return listed([*variables[: MANY - 1], f"{len(parameters)} parameters", *variables[MANY - 1 :], *attributes])
    return listed([*variables, *(names[tensor] for tensor in parameters), *attributes])


def _is_attribute(name: str) -> bool:
    return "." in name and "(" not in name


def _by(grad_fns: Sequence[str]) -> str:
    if not grad_fns:
        return ""
    if len(grad_fns) > MANY:
        return f" in {len(grad_fns)} operations, the last {grad_fns[0]}"
    return " by " + ", ".join(reversed(grad_fns))


def listed(names: Iterable[str]) -> str:
    """Returns the first few of the names, and the number of the rest."""
    distinct = list(dict.fromkeys(names))
    rest = len(distinct) - MANY
    return ", ".join(distinct[:MANY]) + (f" and {rest} more" if rest > 0 else "")


def node_name(grad_fn: str) -> str:
    """Returns the name without PyTorch's namespaces: `CopySlices`."""
    return grad_fn.rpartition("::")[2]


def tensors_of(accesses: Iterable[Access]) -> set[int]:
    return {access.tensor for access in accesses}
