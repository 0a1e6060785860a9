"""From what was kept of a run to the tables and events of a `Trace`, with tensors and storages numbered densely.

The tracer's own numbers have holes where a long run has forgotten: a trace names only tensors that something names.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from typing import Any, NamedTuple

from tensorlens.journal.retention import Raw, Retention, is_short, tensors_of
from tensorlens.journal.rows import NEW, NONE, NOTHING, SAME, WRITTEN
from tensorlens.records import model
from tensorlens.records.invariants import REFERENCES
from tensorlens.records.model import Access, Mode, State, Write

MODES: tuple[Mode, ...] = ("grad", "no_grad", "inference")


@dataclass(frozen=True, slots=True)
class CallTemplate:
    """What is the same in all calls that are told by short rows of this plan."""

    op: str
    site: int
    shape: tuple[int, ...]
    dtype: str
    device: str
    nbytes: int
    requires_grad: bool
    grad_fn: str | None
    offset: int  # of the sequence number of `grad_fn` to the first that the call drew
    drawn: int  # sequence numbers
    mode: int
    inputs: int
    result: int  # NEW, WRITTEN or NOTHING


class Info(NamedTuple):
    """A tensor that no short row made; storage and base may be NONE."""

    storage: int
    counter: int
    shape: tuple[int, ...]
    dtype: str
    device: str
    type: str
    base: int


def optional(number: int) -> int | None:
    return None if number == NONE else number


def accesses(flat: tuple[int, ...]) -> tuple[Access, ...]:
    pairs = zip(flat[::2], flat[1::2], strict=True)
    return tuple(Access(tensor, optional(version)) for tensor, version in pairs)


def state_of(raw: tuple[Any, ...], grad: str | None = None) -> State:
    tensor, version, requires_grad, is_leaf, grad_fn, node, retains_grad, storage = raw
    at = optional(storage)
    return State(tensor, optional(version), requires_grad, is_leaf, grad_fn, optional(node), retains_grad, grad, at)


class TraceBuilder:
    """The items of a `Retention` and `records` in the numbers of a trace. `nbytes` is known for the storages that no
    short row made."""

    def __init__(
        self,
        window: Retention,
        plans: dict[int, CallTemplate],
        infos: dict[int, Info],
        nbytes: dict[int, int],
        records: Any,
    ) -> None:
        self._items = items = window.items()
        self._dropped = window.dropped_nodes
        self._nodes: dict[int, tuple[int, str | None, int]] = {}  # tensor -> the event that gave it its node, the node
        self._plans = plans
        self._infos = dict(infos)
        self._nbytes = dict(nbytes)
        self._born: dict[int, int | None] = {}  # every tensor that an item names -> the item that returned it first
        used: set[int] = set(_references(records, "tensors"))
        places: list[int] = []
        for index, content, _ in items:
            if type(content) is not tuple:
                used.update(_references(content, "tensors"))
                places += _references(content, "storages")
            elif is_short(content):
                used.add(self._note_short(index, content))
            else:
                self._note_call(index, content)
                used.update(tensors_of(content))
                places += [state[7] for state in content[6]]
        used |= self._born.keys()
        used.discard(NONE)
        used.update([self._info(number).base for number in used])
        used.discard(NONE)
        self._tensors = {number: position for position, number in enumerate(sorted(used))}
        lain_in = [self._info(number).storage for number in self._tensors]
        met = dict.fromkeys([*lain_in, *places, *_references(records, "storages")])
        self._storages = {place: n for n, place in enumerate(place for place in met if place != NONE)}
        self._met: dict[int, Access] = {}  # tensor -> the last access to it

    def _note_short(self, index: int, raw: Raw) -> int:
        """Note who came of a short row; its base is returned, or NONE."""
        born = self._born
        for tensor in raw[1:-4:2]:
            if tensor not in born:
                born[tensor] = None
        number: int = raw[-4]
        base: int = raw[-3]
        if number not in born:
            born[number] = index
        plan = self._plans[raw[0]]
        if plan.result == NEW:
            storage = counter = number
            if base != NONE:
                storage, counter = self._info(base)[:2]
            self._nbytes.setdefault(storage, plan.nbytes)
            self._infos[number] = Info(storage, counter, plan.shape, plan.dtype, plan.device, "Tensor", base)
        return base

    def _note_call(self, index: int, raw: Raw) -> None:
        for tensor in raw[3][::2]:
            self._born.setdefault(tensor, None)
        for tensor in raw[4][::2]:
            self._born.setdefault(tensor, index)

    def _info(self, number: int) -> Info:
        return self._infos.get(number) or Info(NONE, number, (), "", "", "Tensor", NONE)

    def tensors(self) -> tuple[model.Tensor, ...]:
        return tuple(self._tensor(number, position) for number, position in self._tensors.items())

    def _tensor(self, number: int, position: int) -> model.Tensor:
        info = self._info(number)
        place, base = self._storages.get(info.storage), self._tensors.get(info.base)
        return model.Tensor(
            position,
            place,
            info.counter,
            info.shape,
            info.dtype,
            info.device,
            info.type,
            base,
            self._born.get(number),
        )

    def storages(self) -> tuple[model.Storage, ...]:
        return tuple(model.Storage(n, self._nbytes.get(place, 0)) for place, n in self._storages.items())

    def events(self) -> tuple[model.Event, ...]:
        return tuple(
            self.record(content)
            if type(content) is not tuple
            else self._short(index, content, within)
            if is_short(content)
            else self._call(index, content, within)
            for index, content, within in self._items
        )

    def _short(self, index: int, raw: Raw, within: str) -> model.Call:
        plan = self._plans[raw[0]]
        number, _, version, first = raw[-4:]
        tensor, place = self._tensors[number], self._storages.get(self._info(number).storage)
        inputs = self._accesses(raw[1:-4])
        output = self._met[number] = Access(tensor, version)
        node = None if plan.grad_fn is None else first + plan.offset
        if node is not None:
            self._nodes[number] = index, plan.grad_fn, node
        state = State(tensor, version, plan.requires_grad, node is None, plan.grad_fn, node, False, None, place)
        written = inputs[0].version if plan.result == WRITTEN else None
        return model.Call(
            index,
            plan.op,
            plan.site,
            inputs,
            () if plan.result == NOTHING else (output,),
            () if written is None else (Write(tensor, written, version),),
            (state,),
            (first, first + plan.drawn),
            MODES[plan.mode],
            within,
        )

    def _call(self, index: int, raw: Raw, within: str) -> model.Call:
        _, op, site, inputs, outputs, writes, states, first, last, mode = raw
        return model.Call(
            index,
            op,
            site,
            self._accesses(inputs),
            self._accesses(outputs),
            tuple(Write(self._tensors[t], *v) for t, *v in zip(writes[::3], writes[1::3], writes[2::3], strict=True)),
            tuple(self._state(state, index) for state in states),
            (first, last),
            MODES[mode],
            within,
        )

    def _accesses(self, flat: tuple[int, ...]) -> tuple[Access, ...]:
        met, found = self._met, []
        for position in range(0, len(flat), 2):
            tensor, version = flat[position : position + 2]
            access = met.get(tensor)
            if access is None or access.version != version:
                access = met[tensor] = Access(self._tensors[tensor], optional(version))
            found.append(access)
        return tuple(found)

    def _state(self, raw: Raw, index: int) -> State:
        tensor, version, requires_grad, is_leaf, grad_fn, node, retains_grad, storage = raw
        place = self._storages.get(storage)
        if node == SAME:
            grad_fn, node = self._node_before(tensor, index)
        elif node != NONE:
            self._nodes[tensor] = index, grad_fn, node
        numbers = (optional(version), requires_grad, is_leaf, grad_fn, optional(node), retains_grad)
        return State(self._tensors[tensor], *numbers, None, place)

    def _node_before(self, tensor: int, index: int) -> tuple[str | None, int]:
        """The name and sequence number of the node that a tensor has had since before event `index`."""
        dropped = self._dropped.get(tensor)
        known = self._nodes.get(tensor, (NONE, None, NONE))
        if dropped is None or not known[0] < dropped[0] < index:
            return known[1:]
        raw = dropped[1]
        if is_short(raw):
            plan = self._plans[raw[0]]
            return plan.grad_fn, raw[-1] + plan.offset
        return next((state[4], state[5]) for state in raw[6] if state[0] == tensor)

    def record(self, record: Any) -> Any:
        """A record, and all that it holds, in the numbers of the trace."""
        tables = {"tensors": self._tensors, "storages": self._storages}
        references = REFERENCES.get(type(record), {})
        changed: dict[str, Any] = {}
        for name in _fields(record.__class__):
            value = getattr(record, name)
            table = tables.get(references.get(name, ""))
            if table is not None:
                new: Any = tuple(map(table.get, value)) if type(value) is tuple else table.get(value)
            elif type(value) is tuple:
                new = tuple(self.record(item) if is_dataclass(item) else item for item in value)
            else:
                new = self.record(value) if is_dataclass(value) else value
            if new != value:
                changed[name] = new
        return replace(record, **changed) if changed else record


def _references(record: Any, kind: str) -> Iterable[int]:
    """The numbers of a kind that a record, or a collection of them, holds."""
    if type(record) in (tuple, list):
        for item in record:
            if is_dataclass(item) or type(item) in (tuple, list):
                yield from _references(item, kind)
        return
    references = REFERENCES.get(type(record), {})
    for name in _fields(record.__class__):
        value = getattr(record, name)
        if references.get(name) == kind:
            yield from (n for n in (value if type(value) is tuple else (value,)) if n is not None)
        elif type(value) is tuple or is_dataclass(value):
            yield from _references(value, kind)


def _storages(content: Any) -> Iterable[int]:
    return _references(content, "storages")


@cache
def _fields(kind: Hashable) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))  # type: ignore[arg-type]
