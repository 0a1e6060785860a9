"""What one line did, in words: each phrase is derived from the events of one visit to the line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tensorlens.analysis.naming.names import Names
from tensorlens.analysis.naming.places import place_of
from tensorlens.analysis.story.gradient_changes import gradient_kind, gradient_text
from tensorlens.analysis.story.origins import MANY, VisitCalls, listed, origin
from tensorlens.analysis.story.running_state import RunningState
from tensorlens.records.model import (
    Backward,
    Call,
    Event,
    Failure,
    GradMode,
    Notice,
    Region,
    SavedTensor,
    State,
    Trace,
    Write,
)
from tensorlens.records.source import one_line

_MODES = {"grad": "gradient recording on", "no_grad": "gradient recording off", "inference": "inference mode"}
REGION_TEXTS = {
    "detect_anomaly": "anomaly detection on",
    "saved_tensors_hooks": "hooks on saved tensors",
    "save_on_cpu": "saved tensors go to the CPU",
    "disable_saved_tensors_hooks": "hooks on saved tensors refused",
    "dual_level": "forward-mode level",
}
"""The special modes whose beginning is part of the story."""
_LOOKS = (".grad.__get__", ".grad_fn.__get__")  # a look at a tensor's attribute makes nothing
_READS = {
    **dict.fromkeys(("item", "__float__", "__int__", "__index__", "__format__"), "read as a number"),
    "__bool__": "read as true or false",
    "tolist": "read as a list",
}


@dataclass(frozen=True, slots=True)
class LineEvent:
    """One thing that happened: to `name` (may be empty), in the memory `storage` (`#1`, may be empty)."""

    name: str
    text: str
    storage: str = ""
    kind: Literal["plain", "error", "warning", "passing"] = "plain"  # passing: told if the line has nothing else
    more: tuple[str, ...] = ()  # what follows from it: `out changes too`


class Phrases:
    """Turns the events of a visit into facts. Fed in order, it knows each tensor's state before the visit."""

    def __init__(self, trace: Trace, names: Names) -> None:
        self._trace = trace
        self._names = names
        self._ledger = RunningState(trace, names)
        switches = [event for event in trace.events if isinstance(event, GradMode)]
        self._blocks = {
            way: {self._place(event) for event in switches if event.entering is way} for way in (True, False)
        }
        self._saved = [saved for failure in trace.failures for saved in failure.saved if saved.problem == "version"]

    def observe(self, events: Iterable[Event]) -> None:
        """Go on past these events."""
        self._ledger.observe(events)

    def of(self, events: Sequence[Event]) -> list[LineEvent]:
        """The facts of one visit to a line, before `observe` is told of it."""
        calls = [event for event in events if isinstance(event, Call)]
        backwards = [event for event in events if isinstance(event, Backward)]
        facts = self._calls(calls, VisitCalls(self._trace, calls, backwards)) if calls else []
        for event in events:
            if isinstance(event, Backward):
                facts += self._backward(event)
            elif isinstance(event, GradMode):
                facts += self._grad_mode(event)
            elif isinstance(event, Region):
                facts.append(LineEvent("", REGION_TEXTS[event.name]))
            elif isinstance(event, Notice):
                facts.append(LineEvent("", f"{event.category}: {one_line(event.message, 60)}", kind="warning"))
        return facts

    # --- calls ------------------------------------------------------------------------------------------------------

    def _calls(self, calls: list[Call], visit: VisitCalls) -> list[LineEvent]:
        facts = _folded(fact for call in calls for fact in self._made(call, visit))
        facts += self._writes(calls, visit.made)
        facts += _folded([*self._changes(calls, visit.made), *(fact for call in calls for fact in self._special(call))])
        return self._with_saved(facts or _folded(self._passing(calls, visit)), calls)

    def _made(self, call: Call, visit: VisitCalls) -> Iterator[LineEvent]:
        """The new tensors that have a name, or that nothing on the line used up."""
        if call.op.startswith("optim."):
            targets = self._trace.sites[call.site].targets
            count = len({access.tensor for access in call.inputs})
            yield LineEvent(targets[0] if targets else "", f"{call.op[6:]} over {_count(count, 'parameter')}")
        if call.op.endswith(_LOOKS):
            return
        direct = self._names.syntax.is_direct(self._trace.sites[call.site], call.op)
        told: dict[str, LineEvent] = {}
        for access in call.outputs:
            if visit.made.get(access.tensor) is not call or access.tensor not in visit.states:
                continue
            if self._names.is_named(access.tensor) or (direct and access.tensor not in visit.consumed):
                fact = self._new(access.tensor, call, visit)
                told.setdefault(fact.name, fact)  # `for row in table` gives every row the same name
        yield from told.values()

    def _new(self, tensor: int, call: Call, visit: VisitCalls) -> LineEvent:
        text = origin(self._ledger, call, visit.states[tensor], visit)
        return LineEvent(self._names.display_name(tensor, call.index), text, self._ledger.mark(tensor))

    def _passing(self, calls: list[Call], visit: VisitCalls) -> Iterator[LineEvent]:
        """What a line comes to that keeps nothing: the values that it reads, or the tensor that it hands on."""
        for call in calls:
            name = call.op.rpartition(".")[2]
            if name in _READS and call.inputs:
                read = call.inputs[0].tensor
                called = self._names.display_name(read, call.index)
                if self._names.syntax.reads(self._trace.sites[call.site], call.op, called):
                    yield LineEvent(called, _READS[name], self._ledger.mark(read), "passing")
        last, left = calls[-1], visit.made.keys() - visit.consumed
        site = self._trace.sites[last.site]
        is_direct = self._names.syntax.is_direct(site, last.op)
        if last.op.endswith(_LOOKS) or (site.targets and not is_direct):  # what is stored is no tensor, or another
            return
        if len(left) > 1 and not is_direct:
            return  # library code made several tensors: none of them alone is the value (`net.state_dict()`)
        for access in last.outputs:
            if visit.made.get(access.tensor) is last and access.tensor in visit.states:
                yield replace(self._new(access.tensor, last, visit), kind="passing")

    def _writes(self, calls: list[Call], made: dict[int, Call]) -> list[LineEvent]:
        writes = [
            (call, write)
            for call, write in _merged_writes(calls)
            if (write.tensor not in made or self._ledger.is_old_memory(write.tensor))
            and not self._is_state(call, write)
        ]
        blocks = {self._ledger.memory(write.tensor): write.tensor for _, write in writes}  # aliases are one tensor
        if len(blocks) <= MANY:
            return _once_each(self._write(call, write) for call, write in writes)
        parameters = sum(map(self._ledger.holds_parameter, blocks.values()))
        counts = [_count(parameters, "parameter")] if parameters else []
        if len(blocks) > parameters:
            counts.append(_count(len(blocks) - parameters, "other tensor" if parameters else "tensor"))
        return [LineEvent("", " and ".join(counts) + " changed in place")]

    def _is_state(self, call: Call, write: Write) -> bool:
        """Whether an optimizer step wrote what it keeps for itself: not all of that is recorded, so none is counted."""
        known = self._names.is_named(write.tensor) or self._ledger.requires_grad(write.tensor)
        return bool(call.within) and not known

    def _write(self, call: Call, write: Write) -> LineEvent:
        text = f"changed in place, v{write.before} -> v{write.after}"
        after = next((state for state in call.states if state.tensor == write.tensor), None)
        before = self._ledger.state(write.tensor)
        if after and after.grad_fn and (before is None or before.grad_fn != after.grad_fn):
            text += f", now from {after.grad_fn}"
        others = self._ledger.named_in_memory(call, write.tensor)
        name, mark = self._names.display_name(write.tensor, call.index), self._ledger.mark(write.tensor)
        if self._names.script_name(write.tensor, call.index) is None:
            known = next((other for other in others if self._ledger.reaches(write.tensor, other, call.op)), None)
            if known is not None:
                others.remove(known)
                same = self._trace.tensors[known].counter == self._trace.tensors[write.tensor].counter
                text = "changed in place through an alias" + ("" if same else ", its version stays")
                name = self._names.display_name(known, call.index)
        return LineEvent(name, text, mark, more=self._ledger.effects(call, others, write.tensor))

    def _changes(self, calls: Sequence[Call], made: dict[int, Call]) -> Iterator[LineEvent]:
        """Changes of what autograd says of a tensor, other than by a write: all that one visit made, in their order."""
        texts: dict[int, list[str]] = {}
        last: dict[int, tuple[State, Call]] = {}
        for call in calls:
            written = {write.tensor for write in call.writes}
            for state in call.states:
                before = last[state.tensor][0] if state.tensor in last else self._ledger.state(state.tensor)
                last[state.tensor] = state, call
                if before is None or state.tensor in made or state.tensor in written:
                    continue
                texts.setdefault(state.tensor, []).extend(_differences(before, state))
        for tensor, found in texts.items():
            state, call = last[tensor]
            if found:
                yield LineEvent(
                    self._names.display_name(tensor, call.index),
                    _in_turn(found),
                    self._names.storage_mark(state.storage),
                )

    def _special(self, call: Call) -> Iterator[LineEvent]:
        """Calls that leave no output, write or change of state, and still matter."""
        if not call.inputs:
            return
        name = self._names.display_name(call.inputs[0].tensor, call.index)
        if call.op.endswith((".numpy", ".__array__")):
            text = "read as a NumPy array, which may share its memory"
            yield LineEvent(name, text, self._ledger.mark(call.inputs[0].tensor))
        elif call.op.endswith(".grad.__set__"):
            value = self._names.display_name(call.inputs[1].tensor, call.index) if len(call.inputs) > 1 else "None"
            yield LineEvent(f"{name}.grad", f"set to {value}")

    def _with_saved(self, facts: list[LineEvent], calls: list[Call]) -> list[LineEvent]:
        """Say on the line that saved them which tensors a failed backward asked for."""
        texts = []
        for saved in self._saved:
            for call in calls:
                if call.nodes[0] <= saved.sequence < call.nodes[1] and saved.expected is not None:
                    texts.append(f"{self._saved_name(saved, call)} v{saved.expected}")
        if not texts or not facts:
            return facts
        note = "saved: " + ", ".join(dict.fromkeys(texts))
        return [*facts[:-1], replace(facts[-1], more=(*facts[-1].more, note))]

    def _saved_name(self, saved: SavedTensor, call: Call) -> str:
        """What was saved, by name: the tensor itself, else the output or input of the call in the same memory."""
        if saved.tensor is not None:
            return self._names.display_name(saved.tensor, call.index)
        near = [access.tensor for access in (*call.outputs, *call.inputs)]
        same = [
            tensor
            for tensor in near
            if saved.storage is not None and self._trace.tensors[tensor].storage == saved.storage
        ]
        return self._names.display_name(same[0], call.index) if same else saved.slot

    # --- backward and grad mode -------------------------------------------------------------------------------------

    def _backward(self, event: Backward) -> list[LineEvent]:
        if not event.gradients:
            if event.failed:
                return []
            asked = listed(self._names.display_name(tensor, event.index) for tensor in event.inputs)
            return [LineEvent("", f"gradient of {asked} returned, no .grad changed" if asked else "no .grad changed")]
        names = [self._names.display_name(gradient.tensor, event.index) for gradient in event.gradients]
        if len(names) > MANY:
            parts = Counter(gradient_kind(gradient) for gradient in event.gradients)
            named = f": {', '.join(names)}" if len(names) <= 2 * MANY else ""
            return [
                LineEvent("", ", ".join(f".grad of {_count(n, 'tensor')} {kind}" for kind, n in parts.items()) + named)
            ]
        return [LineEvent(f"{n}.grad", gradient_text(g)) for n, g in zip(names, event.gradients, strict=True)]

    def _grad_mode(self, event: GradMode) -> list[LineEvent]:
        """A block is told once, where it is entered."""
        text, place = _MODES[event.mode], self._place(event)
        if not event.entering:
            return [] if place in self._blocks[True] else [LineEvent("", f"{text} again")]
        text += "" if event.mode == "inference" else f" ({event.cause})"
        if event.decorator:
            return [LineEvent("", f"{text} in each call")]
        if place not in self._blocks[False]:
            return [LineEvent("", f"{text} from here on")]
        called = self._names.syntax.is_call(self._trace.sites[event.site])  # it turns the mode off by itself
        return [LineEvent("", text + (" in this call" if called else " in this block"))]

    def _place(self, event: GradMode) -> tuple[str, str, int]:
        return place_of(self._trace.sites[event.site])


def failure_event(failure: Failure) -> LineEvent:
    """The exception, on the line that it came from; what a caught one said is told here, for nothing else will."""
    if failure.caught:
        return LineEvent("", f"{failure.type}, caught: {one_line(failure.message, 80)}", kind="error")
    return LineEvent("", failure.type, kind="error")


def _merged_writes(calls: Sequence[Call]) -> list[tuple[Call, Write]]:
    """One write a tensor: from its first version in these calls to its last."""
    merged: dict[int, tuple[Call, Write]] = {}
    for call in calls:
        for write in call.writes:
            first = merged[write.tensor][1] if write.tensor in merged else write
            merged[write.tensor] = (call, replace(write, before=first.before))
    return list(merged.values())


def _once_each(facts: Iterable[LineEvent]) -> list[LineEvent]:
    """Facts without repetitions: several aliases of one tensor were written."""
    return list(dict.fromkeys(facts))


def _folded(facts: Iterable[LineEvent]) -> list[LineEvent]:
    """Many facts that say the same of different tensors, as one."""
    groups: dict[tuple[str, tuple[str, ...]], list[LineEvent]] = {}
    for fact in facts:
        groups.setdefault((fact.text, fact.more), []).append(fact)
    folded: list[LineEvent] = []
    for (text, _), group in groups.items():
        gradients = all(fact.name.endswith(".grad") for fact in group)
        subject = f".grad of {len(group)} tensors" if gradients else f"{len(group)} tensors"
        folded += group if len(group) <= MANY else [LineEvent("", f"{subject}: {text}")]
    return folded


def _differences(before: State, after: State) -> Iterator[str]:
    if before.grad_fn and not after.grad_fn and after.is_leaf:
        yield "detached in place: a leaf, outside the graph"
    elif before.requires_grad != after.requires_grad:
        yield "requires grad from here on" if after.requires_grad else "no longer requires grad"
    elif before.grad_fn and after.grad_fn and before.grad_fn != after.grad_fn:
        yield f"now from {after.grad_fn}"
    if after.retains_grad and not before.retains_grad:
        yield "keeps its gradient from here on"
    if None not in (before.storage, after.storage) and before.storage != after.storage:
        yield "moved to other memory"


def _in_turn(texts: list[str]) -> str:
    """Changes that followed one another; of many that repeat, each once and how it ended."""
    turns = [text for text, before in zip(texts, [None, *texts], strict=False) if text != before]
    return ", then ".join(turns if len(turns) <= MANY else [*dict.fromkeys(turns[:-1]), f"at last {turns[-1]}"])


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
