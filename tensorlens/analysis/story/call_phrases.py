"""Says in words what the calls of one run of a line did."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tensorlens.analysis.story.line_events import MANY, LineEvent, count_text, folded
from tensorlens.analysis.story.origins import VisitCalls, node_name, origin
from tensorlens.analysis.story.tensors_before import TensorsBefore
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.failure_context import SavedTensor
from tensorlens.records.model import Call, State, Write

_ATTRIBUTE_READS = (".grad.__get__", ".grad_fn.__get__")  # they make no tensor
_VALUE_READS = {
    **dict.fromkeys(("item", "__float__", "__int__", "__index__", "__format__"), "read as a plain number"),
    "__bool__": "tested for True or False",
    "tolist": "read as a plain list",
}


class CallPhrases:
    """Puts the calls of one run of a line into phrases."""

    def __init__(self, facts: TraceIndex, before: TensorsBefore, visit: VisitCalls, calls: Sequence[Call]) -> None:
        self._facts = facts
        self._trace = facts.trace
        self._names = before.names
        self._before = before
        self._visit = visit
        self._calls = calls

    def line_events(self, modified: Sequence[SavedTensor]) -> list[LineEvent]:
        """Returns all phrases. `modified` are the saved tensors that failed the version check of a later backward."""
        events = folded(event for call in self._calls for event in self._new_tensors(call))
        events += self._writes()
        events += folded([*self._state_changes(), *(event for call in self._calls for event in self._other_uses(call))])
        return self._with_saved(events or folded(self._passing()), modified)

    # --- new tensors ------------------------------------------------------------------------------------------------

    def _new_tensors(self, call: Call) -> Iterator[LineEvent]:
        """Yields the new tensors that have a name, or that no other call of the line read."""
        visit = self._visit
        if call.op.startswith("optim."):
            targets = self._trace.sites[call.site].targets
            count = len({access.tensor for access in call.inputs})
            yield LineEvent(targets[0] if targets else "", f"{call.op[6:]} over {count_text(count, 'parameter')}")
        if call.op.endswith(_ATTRIBUTE_READS):
            return
        direct = self._names.syntax.is_direct(self._trace.sites[call.site], call.op)
        by_name: dict[str, LineEvent] = {}
        for access in call.outputs:
            if visit.made.get(access.tensor) is not call or access.tensor not in visit.states:
                continue
            if self._names.is_named(access.tensor) or (direct and access.tensor not in visit.consumed):
                event = self._new_tensor(access.tensor, call)
                by_name.setdefault(event.name, event)  # `for row in table` gives every row the same name
        yield from by_name.values()

    def _new_tensor(self, tensor: int, call: Call) -> LineEvent:
        text = origin(self._before, call, self._visit.states[tensor], self._visit)
        name = self._before.current.described(tensor, self._calls[-1].index)  # the line may store it later
        return LineEvent(name, text, self._before.mark(tensor))

    def _passing(self) -> Iterator[LineEvent]:
        """Yields, for a line that stores no tensor, the values that it reads or the tensor that it passes on."""
        for call in self._calls:
            method = call.op.rpartition(".")[2]
            if method in _VALUE_READS and call.inputs:
                tensor = call.inputs[0].tensor
                name = self._names.display_name(tensor, call.index)
                if self._names.syntax.reads(self._trace.sites[call.site], call.op, name):
                    yield LineEvent(name, _VALUE_READS[method], self._before.mark(tensor), "passing")
        last, unread = self._calls[-1], self._visit.made.keys() - self._visit.consumed
        site = self._trace.sites[last.site]
        is_direct = self._names.syntax.is_direct(site, last.op)
        if last.op.endswith(_ATTRIBUTE_READS) or (site.targets and not is_direct):
            return  # the line stores something else than the last tensor
        if len(unread) > 1 and not is_direct:
            return  # library code made several tensors: none of them alone is the value (`net.state_dict()`)
        for access in last.outputs:
            if self._visit.made.get(access.tensor) is last and access.tensor in self._visit.states:
                yield replace(self._new_tensor(access.tensor, last), kind="passing")

    # --- changes ----------------------------------------------------------------------------------------------------

    def _writes(self) -> list[LineEvent]:
        before = self._before
        writes = [
            (call, write)
            for call, write in _merged_writes(self._calls)
            if (write.tensor not in self._visit.made or before.is_old_memory(write.tensor))
            and not self._is_optimizer_state(call, write)
        ]
        storages = {before.memory(write.tensor): write.tensor for _, write in writes}  # aliases count as one tensor
        if len(storages) <= MANY:
            return list(dict.fromkeys(self._write(call, write) for call, write in writes))
        parameters = sum(map(before.shares_with_parameter, storages.values()))
        gradients = sum(self._names.display_name(tensor).endswith(".grad") for tensor in storages.values())
        counts = [count_text(n, noun) for n, noun in ((parameters, "parameter"), (gradients, "gradient")) if n]
        others = len(storages) - parameters - gradients
        if others:
            counts.append(count_text(others, "other tensor" if counts else "tensor"))
        return [LineEvent("", " and ".join(counts) + " changed in place")]

    def _is_optimizer_state(self, call: Call, write: Write) -> bool:
        """Returns whether an optimizer step wrote to its own state. Such writes are left out: not all of them are
        recorded."""
        known = self._names.is_named(write.tensor) or self._before.requires_grad(write.tensor)
        return bool(call.within) and not known

    def _write(self, call: Call, write: Write) -> LineEvent:
        text = f"changed in place, v{write.before} -> v{write.after}"
        new = next((state for state in call.states if state.tensor == write.tensor), None)
        old = self._before.state(write.tensor)
        if new and new.grad_fn and (old is None or old.grad_fn != new.grad_fn):
            text += f", its grad_fn is now {node_name(new.grad_fn)}"
        others = self._before.named_in_memory(call, write.tensor)
        name = self._before.current.described(write.tensor, call.index)
        if self._names.script_name(write.tensor, call.index) is None:
            changed = (other for other in others if self._before.surely_changes(other, write.tensor, call.op))
            known = next(changed, None)
            if known is not None:
                others.remove(known)
                same = self._trace.tensors[known].counter == self._trace.tensors[write.tensor].counter
                text = "changed through shared memory" + ("" if same else ", its version stays")
                name = self._before.current.name(known, call.index) or name
        more = self._before.effects(call, others, write.tensor)
        return LineEvent(name, text, self._before.mark(write.tensor), more=more)

    def _state_changes(self) -> Iterator[LineEvent]:
        """Yields the changes of autograd state that no write made, in order."""
        texts: dict[int, list[str]] = {}
        last: dict[int, tuple[State, Call]] = {}
        for call in self._calls:
            written = {write.tensor for write in call.writes}
            for state in call.states:
                old = last[state.tensor][0] if state.tensor in last else self._before.state(state.tensor)
                last[state.tensor] = state, call
                if old is None or state.tensor in self._visit.made or state.tensor in written:
                    continue
                texts.setdefault(state.tensor, []).extend(_differences(old, state))
        for tensor, changes in texts.items():
            state, call = last[tensor]
            if changes:
                name, mark = self._before.current.described(tensor, call.index), self._names.storage_mark(state.storage)
                yield LineEvent(name, _in_turn(changes), mark)

    def _other_uses(self, call: Call) -> Iterator[LineEvent]:
        """Yields uses that matter although they make no tensor, write nothing and change no state."""
        if not call.inputs:
            return
        if call.op.endswith((".numpy", ".__array__")):
            name = self._before.current.described(call.inputs[0].tensor, call.index)
            text = "read as a NumPy array, which may share its memory"
            yield LineEvent(name, text, self._before.mark(call.inputs[0].tensor))
        elif call.op.endswith(".grad.__set__"):
            name = self._before.current.described(call.inputs[0].tensor, call.index)
            values = [self._before.current.described(access.tensor, call.index) for access in call.inputs[1:]]
            value = values[0] if values else "None"
            yield LineEvent(f"{name}.grad", "set" if value == f"{name}.grad" else f"set to {value}")

    # --- saved tensors ----------------------------------------------------------------------------------------------

    def _with_saved(self, events: list[LineEvent], modified: Sequence[SavedTensor]) -> list[LineEvent]:
        """Adds the tensors that the line saved and that a later backward found changed."""
        texts = []
        for saved in modified:
            for call in self._calls:
                if call.nodes[0] <= saved.sequence < call.nodes[1] and saved.expected is not None:
                    tensor = self._facts.saved_tensor(saved, call)
                    name = saved.slot if tensor is None else self._names.display_name(tensor, call.index)
                    texts.append(f"{name} v{saved.expected}")
        if not texts or not events:
            return events
        note = "saved: " + ", ".join(dict.fromkeys(texts))
        return [*events[:-1], replace(events[-1], more=(*events[-1].more, note))]


def _merged_writes(calls: Iterable[Call]) -> list[tuple[Call, Write]]:
    """Merges the writes to each tensor into one: from its first version in these calls to its last."""
    merged: dict[int, tuple[Call, Write]] = {}
    for call in calls:
        for write in call.writes:
            first = merged[write.tensor][1] if write.tensor in merged else write
            merged[write.tensor] = (call, replace(write, before=first.before))
    return list(merged.values())


def _differences(before: State, after: State) -> Iterator[str]:
    if before.grad_fn and not after.grad_fn and after.is_leaf:
        yield "detached in place: now a leaf"
    elif before.requires_grad != after.requires_grad:
        yield "requires grad now" if after.requires_grad else "requires no grad now"
    elif before.grad_fn and after.grad_fn and before.grad_fn != after.grad_fn:
        yield f"its grad_fn is now {node_name(after.grad_fn)}"
    if after.retains_grad and not before.retains_grad:
        yield "keeps its gradient now"
    if None not in (before.storage, after.storage) and before.storage != after.storage:
        yield "moved to other memory"


def _in_turn(texts: list[str]) -> str:
    """Joins changes in their order. Of many changes, each is listed once, and the last one at the end."""
    turns = [text for text, before in zip(texts, [None, *texts], strict=False) if text != before]
    return ", then ".join(turns if len(turns) <= MANY else [*dict.fromkeys(turns[:-1]), f"at last {turns[-1]}"])
