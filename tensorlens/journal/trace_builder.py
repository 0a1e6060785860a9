"""Builds the tables and events of a `Trace`: gives tensors and storages new ids, without holes.

The tracer's own ids have holes where a long run has forgotten tensors. A trace has only the tensors that something in
it names.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache, partial
from operator import is_not
from typing import Any

from tensorlens.journal import rows
from tensorlens.journal.call_runs import CompactCall, Item, tensors_of
from tensorlens.journal.call_templates import CallTemplates
from tensorlens.journal.ended_passes import EndedPass
from tensorlens.journal.explaining_calls import StatesOfCall
from tensorlens.journal.memory_rows import TensorKind, TensorRow
from tensorlens.journal.retention import Retention
from tensorlens.journal.rows import ALIAS, NEW, NOTHING, SAME, WRITTEN, CallRow
from tensorlens.records import model
from tensorlens.records.fields import holders_of, references_of
from tensorlens.records.model import Access, Mode, State, Write
from tensorlens.records.record_code import maker

_access: Callable[..., Access] = maker(Access)
_write: Callable[..., Write] = maker(Write)
_state: Callable[..., State] = maker(State)
_call: Callable[..., model.Call] = maker(model.Call)
_tensor: Callable[..., model.Tensor] = maker(model.Tensor)
_storage: Callable[..., model.Storage] = maker(model.Storage)
_new_row = partial(tuple.__new__, TensorRow)

_Found = dict[str, list[int | None]]  # table -> ids in it
_HOLDER = "records"  # in the place of a table: the field can have records in it

MODES: tuple[Mode, ...] = ("grad", "no_grad", "inference")


def state_of(state: Iterable[Any], grad: str | None = None) -> State:
    """Returns the state of a tensor when the run ends. `grad` is the text of its gradient."""
    tensor, version, requires_grad, is_leaf, grad_fn, node, retains_grad, storage = state
    return State(tensor, version, requires_grad, is_leaf, grad_fn, node, retains_grad, grad, storage)


class TraceBuilder:
    """Turns the items of a `Retention`, and other `records`, into records with the ids of the trace.

    `tensors` and `nbytes` (of each storage) hold what has a row of its own. The tensors and storages that compact calls
    made have none: the builder adds them.
    """

    def __init__(
        self,
        retention: Retention,
        templates: CallTemplates,
        tensors: Mapping[int, TensorRow | TensorKind],
        nbytes: dict[int, int],
        records: Any,
    ) -> None:
        of_records: _Found = {"tensors": [], "storages": []}
        _add_references(records, of_records)
        used: set[int | None] = set(of_records["tensors"])
        items: list[Item] = [
            (item[0], item[1].event(item[0]), item[2]) if type(item[1]) is EndedPass else item
            for item in retention.items({number for number in used if number is not None})
        ]
        self._dropped = retention.dropped_nodes()
        self._states_of_call = StatesOfCall()
        self._nodes: dict[int, tuple[int, str | None, int]] = {}  # tensor -> the event that gave it its node, the node
        self._templates, self._sites = templates.rows, templates.sites
        self._rows = dict(tensors)
        self._nbytes = dict(nbytes)
        self._moved: dict[int, int] = {}  # tensor -> the storage that a call gave it
        self._created_by: dict[int, int | None] = {}  # every tensor that an item names -> the item that returned it
        of_events: _Found = {"tensors": [], "storages": []}
        storages = of_events["storages"]
        self._items = deque(items)
        for index, content, _ in items:
            if type(content) is tuple:
                used.add(self._note_compact_call(index, content))
            elif type(content) is CallRow:
                self._note_call(index, content)
                used.update(tensors_of(content))
                storages += [state[7] for state in content.states]
            else:
                _add_references(content, of_events)
        used.update(of_events["tensors"])
        used |= self._created_by.keys()
        used |= {self._row(number).base for number in used if number is not None}
        named = sorted(number for number in used if number is not None and number >= 0)
        self.tensor_numbers = self._tensors = {number: n for n, number in enumerate(named)}
        storages = [*(self._row(number).storage for number in self._tensors), *storages, *of_records["storages"]]
        found = [storage for storage in dict.fromkeys(storages) if storage is not None and storage != rows.NONE]
        self._storages: dict[int | None, int] = {storage: n for n, storage in enumerate(found)}
        self._numbers: dict[str, dict[Any, int]] = {"tensors": self._tensors, "storages": self._storages}
        self._last_access: dict[int, Access] = {}  # by tensor
        self._last_nodes = (0, 0)  # of the last call
        self._place: dict[int, int] = {}  # tensor -> the storage in its last recorded state
        self.tensors, self.storages = self._made_tensors(), self._made_storages()
        self._rows, self._created_by, self._nbytes, self._moved = {}, {}, {}, {}  # the events need room

    def _note_compact_call(self, index: int, call: CompactCall) -> int:
        """Notes the tensors of a compact call. Returns its result's base, or a negative number."""
        created_by = self._created_by
        for tensor in call[1:-4:2]:
            created_by.setdefault(tensor, None)
        number, base = call[-4], call[-3]
        created_by.setdefault(number, index)
        template = self._templates[call[0]]
        if template.result == ALIAS:
            shape, dtype, device = template.shape, template.dtype, template.device
            self._rows[number] = _new_row((number, rows.of_alias(base), number, shape, dtype, device, "Tensor", None))
        elif template.result == NEW:
            storage: int | None = number
            counter, view_of = number, None
            if base != rows.NONE:
                _, storage, counter, *_ = self._row(base)
                storage = self._moved.get(base, storage)
                view_of = base
            if storage is not None:
                self._nbytes.setdefault(storage, template.nbytes)
            shape, dtype, device = template.shape, template.dtype, template.device
            self._rows[number] = _new_row((number, storage, counter, shape, dtype, device, "Tensor", view_of))
        return base

    def _note_call(self, index: int, call: CallRow) -> None:
        for tensor in call.inputs[::2]:
            self._created_by.setdefault(tensor, None)
        for tensor in call.outputs[::2]:
            self._created_by.setdefault(tensor, index)
        self._moved.update({state[0]: state[7] for state in call.states if state[7] is not None})

    def _row(self, number: int) -> TensorRow:
        row = self._rows.get(number)
        if row is None:
            return TensorRow(number, None, number, (), "", "", "Tensor", None)
        return row.row(number) if isinstance(row, TensorKind) else row

    def _made_tensors(self) -> tuple[model.Tensor, ...]:
        numbers, places, created_by = self._tensors, self._storages, self._created_by
        found = []
        for tensor, n in numbers.items():
            _, storage, counter, shape, dtype, device, kind, base = self._row(tensor)
            view_of = None if base is None else numbers.get(base)
            made = created_by.get(tensor)
            found.append(_tensor(n, places.get(storage), counter, shape, dtype, device, kind, view_of, made))
        return tuple(found)

    def _made_storages(self) -> tuple[model.Storage, ...]:
        return tuple(
            _storage(n, self._nbytes.get(storage, 0)) for storage, n in self._storages.items() if storage is not None
        )

    def events(self) -> tuple[model.Event, ...]:
        """Returns the calls and other events of the trace, in order: only once, because it drops the items."""
        found: list[model.Event] = []
        while self._items:
            index, content, within = self._items.popleft()
            if type(content) is tuple:
                found.append(self._compact_call(index, content, within))
            else:
                is_call = type(content) is CallRow
                found.append(self._call(index, content, within) if is_call else self.record(content))
        self._nodes, self._last_access, self._dropped = {}, {}, {}
        return tuple(found)

    def _compact_call(self, index: int, call: CompactCall, within: str) -> model.Call:
        site = self._sites[call[0]]
        _, op, _, _, _, _, _, requires_grad, grad_fn, offset, drawn, mode, _, result = self._templates[call[0]]
        number, _, version, first = call[-4:]
        tensor, place = self._tensors[number], self._place.get(number)
        if place is None:
            place = self.tensors[tensor].storage
        inputs = self._accesses(call[1:-4])
        output = self._last_access[number] = _access(tensor, version)
        nodes = self._shared(first, drawn)
        first = nodes[0]
        node = None
        if grad_fn is not None:
            node = first + offset if offset else first
            self._nodes[number] = index, grad_fn, node
        state = _state(tensor, version, requires_grad, node is None, grad_fn, node, False, None, place)
        before = inputs[0].version if result == WRITTEN else None
        writes = () if before is None else (_write(tensor, before, version),)
        outputs = () if result == NOTHING else (output,)
        return _call(index, op, site, inputs, outputs, writes, (state,), nodes, MODES[mode], within)

    def _shared(self, first: int, drawn: int) -> tuple[int, int]:
        """Returns the sequence numbers that a call draws, from the objects of the call before if these are equal."""
        last = self._last_nodes
        first = last[1] if first == last[1] else first
        nodes = first, first + drawn if drawn else first
        self._last_nodes = nodes = last if nodes == last else nodes
        return nodes

    def _call(self, index: int, row: CallRow, within: str) -> model.Call:
        op, site, inputs, outputs, writes, states, first, end, mode = row
        written = zip(writes[::3], writes[1::3], writes[2::3], strict=True)
        return _call(
            index,
            op,
            site,
            self._accesses(inputs),
            self._accesses(outputs),
            tuple([_write(self._tensors[tensor], before, after) for tensor, before, after in written]),
            tuple([self._state(state, index) for state in states]),
            (first, end),
            MODES[mode],
            within,
        )

    def _accesses(self, flat: rows.AccessRun) -> tuple[Access, ...]:
        """Returns the accesses of a run of ints; equal ones that follow each other are one object."""
        last, found, values = self._last_access, [], iter(flat)
        for tensor, version in zip(values, values, strict=True):
            access = last.get(tensor)
            if access is None or access.version != version:
                access = last[tensor] = _access(self._tensors[tensor], None if version == rows.NONE else version)
            found.append(access)
        return tuple(found)

    def _state(self, state: rows.State, index: int) -> State:
        tensor, version, requires_grad, is_leaf, grad_fn, node, retains_grad, storage = state
        place = self._storages.get(storage)
        if place is not None:
            self._place[tensor] = place
        if node == SAME:
            grad_fn, node = self._node_before(tensor, index)
        elif node is not None:
            self._nodes[tensor] = index, grad_fn, node
        number = self._tensors[tensor]
        return _state(number, version, requires_grad, is_leaf, grad_fn, node, retains_grad, None, place)

    def _node_before(self, tensor: int, index: int) -> tuple[str | None, int | None]:
        """Returns the name and sequence number of the node that a tensor has since before event `index`."""
        dropped = self._dropped.get(tensor)
        known = self._nodes.get(tensor, (rows.NONE, None, None))
        if dropped is None or not known[0] < dropped[0] < index:
            return known[1:]
        call = dropped[1]
        if isinstance(call, CallRow):
            return self._states_of_call.of(call, tensor)[0][4:6]
        template = self._templates[call[0]]
        return template.grad_fn, call[-1] + template.offset

    def record(self, record: Any) -> Any:
        """Returns a record, and all records in it, with the ids of the trace."""
        is_changed, values = False, []
        for name, table in _fields(record.__class__):
            value = new = getattr(record, name)
            values.append(value)
            if not table:
                continue
            kind = value.__class__
            if table in self._numbers:
                numbers = self._numbers[table]
                new = tuple(map(numbers.get, value)) if kind is tuple else numbers.get(value)
                is_changed = is_changed or new != value
            elif kind is tuple:
                new = tuple([self.record(item) if _is_record(item.__class__) else item for item in value])
                is_changed = is_changed or any(map(is_not, new, value))
            elif _is_record(kind):
                new = self.record(value)
                is_changed = is_changed or new is not value
            values[-1] = new
        return maker(record.__class__)(*values) if is_changed else record


def ids_in(records: Any) -> tuple[frozenset[int | None], ...]:
    """Returns the ids of tensors, and those of storages, that a collection of records refers to."""
    found: _Found = {"tensors": [], "storages": []}
    _add_references(records, found)
    return tuple(map(frozenset, found.values()))


def _add_references(record: Any, found: _Found) -> None:
    """Adds the ids that a record, or a collection of records, refers to: each to the list of its table."""
    if type(record) in (tuple, list):
        for item in record:
            if _is_record(item.__class__) or type(item) in (tuple, list):
                _add_references(item, found)
        return
    for name, table in _fields(record.__class__):
        if table in found:
            value = getattr(record, name)
            found[table] += [n for n in (value if type(value) is tuple else (value,)) if n is not None]
        elif table == _HOLDER:
            value = getattr(record, name)
            if (value and type(value) is tuple) or _is_record(value.__class__):
                _add_references(value, found)


@cache
def _fields(kind: Hashable) -> tuple[tuple[str, str], ...]:
    """Returns the fields of a kind of record, each with the table that it refers to, `_HOLDER` if it can have records
    in it, or ""."""
    tables = dict.fromkeys(holders_of(kind), _HOLDER) | references_of(kind)
    return tuple((field.name, tables.get(field.name, "")) for field in fields(kind))  # type: ignore[arg-type]


@cache
def _is_record(kind: Hashable) -> bool:
    return is_dataclass(kind)
