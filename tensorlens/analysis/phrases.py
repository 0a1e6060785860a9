"""What one line did, in words: each phrase is derived from the events of one visit to the line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tensorlens.analysis.names import Names
from tensorlens.model import (
    Access,
    Backward,
    Call,
    Event,
    Failure,
    Gradient,
    GradMode,
    Notice,
    SavedTensor,
    State,
    Trace,
    Write,
)
from tensorlens.source import one_line

MANY = 3
_PARTIAL_WRITES = ("__setitem__", "index_", "masked_", "scatter_", "put_", "fill_diagonal_")
_MODES = {"grad": "gradient recording on", "no_grad": "gradient recording off", "inference": "inference mode"}


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that happened: to `name` (may be empty), in the memory `storage` (`#1`, may be empty)."""

    name: str
    text: str
    storage: str = ""
    kind: Literal["plain", "error", "warning"] = "plain"


class Phrases:
    """Turns the events of a visit into facts. Fed in order, it remembers each tensor's last state."""

    def __init__(self, trace: Trace, names: Names) -> None:
        self._trace = trace
        self._names = names
        self._states: dict[int, State] = {}
        self._met: dict[int, set[int]] = {}  # storage -> tensors met in it so far
        self._last_use = _last_uses(trace)
        self._saved = [saved for failure in trace.failures for saved in failure.saved if saved.problem == "version"]

    def observe(self, events: Iterable[Event]) -> None:
        """Remember the states that `events` left behind."""
        for event in events:
            if isinstance(event, Call):
                self._states.update({state.tensor: state for state in event.states})
                for access in (*event.inputs, *event.outputs):
                    storage = self._storage(access.tensor)
                    if storage is not None:
                        self._met.setdefault(storage, set()).add(access.tensor)

    def of(self, events: Sequence[Event]) -> list[Fact]:
        """The facts of one visit to a line, before `observe` is told of it."""
        calls = [event for event in events if isinstance(event, Call)]
        facts: list[Fact] = []
        if calls:
            facts += self._calls(calls, [event for event in events if isinstance(event, Backward)])
        for event in events:
            if isinstance(event, Backward):
                facts += self._backward(event)
            elif isinstance(event, GradMode):
                facts.append(_grad_mode(event))
            elif isinstance(event, Notice):
                facts.append(Fact("", f"{event.category}: {one_line(event.message, 60)}", kind="warning"))
        return facts

    # --- calls ------------------------------------------------------------------------------------------------------

    def _calls(self, calls: list[Call], backwards: list[Backward]) -> list[Fact]:
        visit = _Visit(self._trace, calls, backwards)
        facts = [fact for call in calls for fact in self._made(call, visit)]
        made = visit.made
        facts = _folded(facts)
        writes = [(calls_at, write) for calls_at, write in _merged_writes(calls) if write.tensor not in made]
        if len(writes) > MANY:
            kind = "parameters" if all(self._is_parameter(write.tensor) for _, write in writes) else "tensors"
            facts.append(Fact("", f"{len(writes)} {kind} changed in place"))
        else:
            facts += [self._write(call, write) for call, write in writes]
        changes = [fact for call in calls for fact in self._changes(call, made)]
        facts += _folded([*changes, *(fact for call in calls for fact in self._special(call))])
        return self._with_saved(facts, calls)

    def _made(self, call: Call, visit: _Visit) -> Iterator[Fact]:
        if call.op.startswith("optim."):
            targets = self._trace.sites[call.site].targets
            count = len({access.tensor for access in call.inputs})
            yield Fact(targets[0] if targets else "", f"{call.op[6:]} over {_count(count, 'parameter')}")
        if call.op.endswith(".grad.__get__"):
            return
        direct = self._names.syntax.is_direct(self._trace.sites[call.site], call.op)
        for access in call.outputs:
            tensor = self._trace.tensors[access.tensor]
            if tensor.created_by != call.index:
                continue
            passing = access.tensor in visit.consumed or not direct
            state = visit.states.get(access.tensor)
            if state and (self._names.is_named(access.tensor) or not passing):
                text = self._origin(call, state, visit)
                yield Fact(self._names.of(access.tensor, call.index), text, self._names.storage(access.tensor))

    def _origin(self, call: Call, state: State, visit: _Visit) -> str:
        tensor = self._trace.tensors[state.tensor]
        sources, grad_fns = self._sources(state.tensor, call, visit)
        by = _by(grad_fns)
        of = self._list(sources, call.index)
        shared = [s for s in sources if tensor.storage is not None and self._storage(s) == tensor.storage]
        if tensor.type == "Parameter" and state.is_leaf:
            return "new parameter" + (", requires grad" if state.requires_grad else ", frozen")
        if tensor.base is not None and shared:
            return f"view of {self._list(shared, call.index)}{by}"
        if shared and state.grad_fn is None:
            cut = any(self._requires_grad(s) for s in shared) and not state.requires_grad
            return f"alias of {self._list(shared, call.index)}" + (", outside the graph" if cut else "")
        if call.op.endswith(("from_numpy", "frombuffer")):
            return "new, shares the memory of a NumPy array"
        if state.is_leaf and state.requires_grad:
            return "new leaf, requires grad"
        if state.grad_fn is None:
            dropped = call.mode != "grad" and any(self._requires_grad(s) for s in sources)
            ending = f", not recorded ({call.mode})" if dropped else ", no grad"
            return (f"from {of}" if of else "new") + ending
        return (f"from {of}" if of else "made") + by

    def _sources(self, tensor: int, call: Call, visit: _Visit) -> tuple[list[int], list[str]]:
        """The tensors that `tensor` was computed from, back to what the visit found or gave a name."""
        sources: dict[int, None] = {}
        grad_fns: list[str] = []
        waiting, seen = [call], {call.index}
        while waiting:
            current = waiting.pop()
            grad_fns += [s.grad_fn for s in current.states if s.grad_fn and s.tensor in _tensors(current.outputs)][:1]
            for access in current.inputs:
                maker = visit.made.get(access.tensor)
                if maker is None or maker.index >= current.index or self._names.is_named(access.tensor):
                    sources[access.tensor] = None
                elif maker.index not in seen:
                    seen.add(maker.index)
                    waiting.append(maker)
        return list(sources), grad_fns

    def _write(self, call: Call, write: Write) -> Fact:
        text = f"changed in place, v{write.before} -> v{write.after}"
        state = next((state for state in call.states if state.tensor == write.tensor), None)
        before = self._states.get(write.tensor)
        if state and state.grad_fn and (before is None or before.grad_fn != state.grad_fn):
            text += f", now from {state.grad_fn}"
        others = self._also_changed(call, write.tensor)
        return Fact(self._names.of(write.tensor, call.index), text + others, self._names.storage(write.tensor))

    def _also_changed(self, call: Call, written: int) -> str:
        """What else lies in the memory that was written, for the tensors that are used again or are alive at the end."""
        storage = self._storage(written)
        alive = [
            other
            for other in sorted(self._met.get(-1 if storage is None else storage, ()))
            if other != written and self._last_use.get(other, -1) > call.index and self._storage(other) == storage
        ]
        named = [other for other in alive if self._names.is_named(other)]
        counter = self._trace.tensors[written].counter
        phrases = []
        for other in named[:MANY]:
            name = self._names.given(other) or self._names.of(other, call.index)
            sure = self._covers(written, other, call.op)
            phrase = f"{name} changes too" if sure else f"{name} lies in the same memory"
            phrases.append(phrase + ("" if self._trace.tensors[other].counter == counter else ", its version stays"))
        if len(named) > MANY:
            phrases.append(f"{len(named) - MANY} more in the same memory")
        return "".join(f"; {phrase}" for phrase in phrases)

    def _covers(self, written: int, other: int, op: str) -> bool:
        """Whether a write to `written` reaches what `other` sees: it is the whole, or all of the whole was written."""
        bases = {written: self._trace.tensors[written].base, other: self._trace.tensors[other].base}
        if bases[written] is None and bases[other] is None:
            return self._trace.tensors[written].shape == self._trace.tensors[other].shape
        if bases[written] == other:
            return True
        return bases[other] == written and not op.rpartition(".")[2].startswith(_PARTIAL_WRITES)

    def _changes(self, call: Call, made: dict[int, Call]) -> Iterator[Fact]:
        """Changes of what autograd says of a tensor, other than by a write."""
        written = {write.tensor for write in call.writes}
        for state in call.states:
            before = self._states.get(state.tensor)
            if before is None or state.tensor in made or state.tensor in written:
                continue
            for text in _differences(before, state):
                yield Fact(self._names.of(state.tensor, call.index), text, self._names.storage(state.tensor))

    def _special(self, call: Call) -> Iterator[Fact]:
        """Calls that leave no output, write or change of state, and still matter."""
        if not call.inputs:
            return
        name = self._names.of(call.inputs[0].tensor, call.index)
        if call.op.endswith((".numpy", ".__array__")):
            text = "read as a NumPy array, which may share its memory"
            yield Fact(name, text, self._names.storage(call.inputs[0].tensor))
        elif call.op.endswith(".grad.__set__"):
            value = self._names.of(call.inputs[1].tensor, call.index) if len(call.inputs) > 1 else "None"
            yield Fact(f"{name}.grad", f"set to {value}")

    def _with_saved(self, facts: list[Fact], calls: list[Call]) -> list[Fact]:
        """Say on the line that saved them which tensors a failed backward asked for."""
        texts = []
        for saved in self._saved:
            for call in calls:
                if call.nodes[0] <= saved.sequence < call.nodes[1] and saved.expected is not None:
                    texts.append(f"{self._saved_name(saved, call)} v{saved.expected}")
        if not texts or not facts:
            return facts
        note = "; saved: " + ", ".join(dict.fromkeys(texts))
        return [*facts[:-1], replace(facts[-1], text=facts[-1].text + note)]

    def _saved_name(self, saved: SavedTensor, call: Call) -> str:
        """What was saved, by name: the tensor itself, else the output or input of the call in the same memory."""
        if saved.tensor is not None:
            return self._names.of(saved.tensor, call.index)
        near = [access.tensor for access in (*call.outputs, *call.inputs)]
        same = [tensor for tensor in near if saved.storage is not None and self._storage(tensor) == saved.storage]
        return self._names.of(same[0], call.index) if same else saved.slot

    # --- backward ---------------------------------------------------------------------------------------------------

    def _backward(self, event: Backward) -> list[Fact]:
        changed = [g for g in event.gradients if g.before != g.after]
        if event.failed and not changed:
            return []
        if not changed:
            asked = self._list(list(event.inputs), event.index)
            return [Fact("", f"gradient of {asked} returned, no .grad changed" if asked else "no .grad changed")]
        if len(changed) > MANY:
            fresh = sum(gradient.before is None for gradient in changed)
            parts = [f".grad of {fresh} tensors set"] if fresh else []
            parts += [f".grad of {len(changed) - fresh} tensors changed"] if fresh < len(changed) else []
            return [Fact("", ", ".join(parts))]
        return [self._gradient(gradient, event.index) for gradient in changed]

    def _gradient(self, gradient: Gradient, at: int) -> Fact:
        name = self._names.of(gradient.tensor, at)
        return Fact(f"{name}.grad", f"{gradient.before} -> {gradient.after}")

    # --- small questions --------------------------------------------------------------------------------------------

    def _list(self, tensors: list[int], at: int) -> str:
        names = list(dict.fromkeys(self._names.of(tensor, at) for tensor in tensors))
        rest = len(names) - MANY
        return ", ".join(names[:MANY]) + (f" and {rest} more" if rest > 0 else "")

    def _requires_grad(self, tensor: int) -> bool:
        state = self._states.get(tensor)
        return state is not None and state.requires_grad

    def _storage(self, tensor: int) -> int | None:
        state = self._states.get(tensor)
        return state.storage if state and state.storage is not None else self._trace.tensors[tensor].storage

    def _is_parameter(self, tensor: int) -> bool:
        return self._trace.tensors[tensor].type == "Parameter"


class _Visit:
    """The calls of one visit to a line: what they made, and what of that they used up themselves."""

    def __init__(self, trace: Trace, calls: Sequence[Call], backwards: Sequence[Backward]) -> None:
        self.made: dict[int, Call] = {}
        self.consumed: set[int] = set()
        self.states: dict[int, State] = {}
        for call in calls:
            self.consumed |= _tensors(call.inputs) & self.made.keys()
            self.states.update({state.tensor: state for state in call.states})
            made = (access.tensor for access in call.outputs)
            self.made.update({tensor: call for tensor in made if trace.tensors[tensor].created_by == call.index})
        for backward in backwards:
            self.consumed |= _tensors(backward.roots)


def _merged_writes(calls: Sequence[Call]) -> list[tuple[Call, Write]]:
    """One write a tensor: from its first version in these calls to its last."""
    merged: dict[int, tuple[Call, Write]] = {}
    for call in calls:
        for write in call.writes:
            first = merged[write.tensor][1] if write.tensor in merged else write
            merged[write.tensor] = (call, replace(write, before=first.before))
    return list(merged.values())


def _folded(facts: list[Fact]) -> list[Fact]:
    """Many facts that say the same of different tensors, as one."""
    groups: dict[str, list[Fact]] = {}
    for fact in facts:
        groups.setdefault(fact.text, []).append(fact)
    folded: list[Fact] = []
    for text, group in groups.items():
        gradients = all(fact.name.endswith(".grad") for fact in group)
        subject = f".grad of {len(group)} tensors" if gradients else f"{len(group)} tensors"
        folded += group if len(group) <= MANY else [Fact("", f"{subject}: {text}")]
    return folded


def _differences(before: State, after: State) -> Iterator[str]:
    if before.requires_grad != after.requires_grad and before.grad_fn is None:
        yield "requires grad from here on" if after.requires_grad else "no longer requires grad"
    elif before.grad_fn and not after.grad_fn and after.is_leaf:
        yield "detached in place: a leaf, outside the graph"
    elif before.grad_fn and after.grad_fn and before.grad_fn != after.grad_fn:
        yield f"now from {after.grad_fn}"
    if after.retains_grad and not before.retains_grad:
        yield "keeps its gradient from here on"
    if None not in (before.storage, after.storage) and before.storage != after.storage:
        yield "moved to other memory"


def _grad_mode(event: GradMode) -> Fact:
    if event.entering:
        suffix = "" if event.mode == "inference" else f" ({event.cause})"
        return Fact("", _MODES[event.mode] + suffix + (", in each call" if event.decorator else ""))
    return Fact("", f"{_MODES[event.mode]} again after it")


def failure_fact(failure: Failure) -> Fact:
    """The exception, on the line that it came from; what a caught one said is told here, for nothing else will."""
    if failure.caught:
        return Fact("", f"{failure.type}, caught: {one_line(failure.message, 80)}", kind="error")
    return Fact("", failure.type, kind="error")


def _by(grad_fns: list[str]) -> str:
    """`grad_fns` comes last first."""
    if not grad_fns:
        return ""
    if len(grad_fns) > MANY:
        return f" by {grad_fns[0]} and {len(grad_fns) - 1} before it"
    return " by " + ", ".join(reversed(grad_fns))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _tensors(accesses: Iterable[Access]) -> set[int]:
    return {access.tensor for access in accesses}


def _last_uses(trace: Trace) -> dict[int, int]:
    """The last event that touches each tensor; the end of the run for those alive then."""
    last: dict[int, int] = {}
    for event in trace.events:
        if isinstance(event, Call):
            last.update({access.tensor: event.index for access in (*event.inputs, *event.outputs)})
        elif isinstance(event, Backward):
            last.update({access.tensor: event.index for access in event.roots})
    end = trace.events[-1].index + 1 if trace.events else 0
    return last | {state.tensor: end for state in trace.end.states}
