"""The rows that the tracer writes while a program runs, and how they become a `Trace`.

A row is a flat tuple whose first item is its tag. Rows hold ints, strings and tuples only, so that `marshal` carries
them through a pipe or file and a process that is killed loses no more than its last batch. No torch in here: the
command's own process reads the journal of the child that ran the script.
"""

from __future__ import annotations

import marshal
import os
import struct
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import IO, Any

from tensorlens import callbacks, circumstances, inspection, model
from tensorlens.messages import classify
from tensorlens.model import Access, Gradient, Mode, State, Write
from tensorlens.source import column_of

(
    VERSIONS,  # tensorlens, torch, python
    SITE,  # id, file, function, (line, end line, column, end column in bytes), targets, caller
    SOURCE,  # file, text
    STORAGE,  # id, nbytes
    TENSOR,  # id, storage, counter, shape, dtype, device, type, base
    CALL,  # op, site, inputs, outputs, writes, states, first node, last node, mode, within
    BACKWARD_START,  # token
    BACKWARD,  # token, op, site, roots, gradients, inputs, retain_graph, create_graph, failed
    MODE,  # site, mode, cause, entering, decorator
    NOTICE,  # site, category, message, op
    GAP,  # reason, site
    FAILURE,  # type, message, op, inputs, saved, stack, site
    CLAIM,  # the fields of `model.Claim`
    END,  # states, bindings
    OUTCOME,  # outcome, exit code, number of the failure that ended the script
    REGION,  # token, site, kind, entering, token of the checkpoint
    CHANGE,  # site, name, before, after, token of the checkpoint
    VALUES,  # number of the failure (none: the last notice), values
    ASSIGNMENT,  # site, name, tensors held before, tensors held now, whether they stand elsewhere too
    ARGUMENTS,  # number of the failure, (name, tensor) of each
    DEAD_ENDS,  # number of the failure, (name, sequence) of each, and of the node come to last
    NOTICED,  # name of a field of `Inspection`, the fields of its record less the index
    CALLBACK,  # name of a field of `Callbacks`, the fields of its record (`callbacks.record`)
) = range(23)

NONE = -1
MODES: tuple[Mode, ...] = ("grad", "no_grad", "inference")
WINDOW = 50_000
_LENGTH = struct.Struct("<Q")


def pack(rows: list[Any]) -> bytes:
    """One batch of rows as bytes."""
    body = marshal.dumps(rows)
    return _LENGTH.pack(len(body)) + body


def unpack(stream: IO[bytes]) -> Iterator[Any]:
    """The rows of a journal file. What follows a batch that was cut short by a killed process, or that something else
    has written over, is left out."""
    left = os.fstat(stream.fileno()).st_size - stream.tell()
    while len(header := stream.read(_LENGTH.size)) == _LENGTH.size:
        (size,) = _LENGTH.unpack(header)
        left -= _LENGTH.size + size
        if left < 0:
            return
        try:
            rows = marshal.loads(stream.read(size))
        except (EOFError, ValueError, TypeError):
            return
        yield from rows


def _optional(number: int) -> int | None:
    return None if number == NONE else number


def _accesses(flat: tuple[int, ...]) -> tuple[Access, ...]:
    pairs = zip(flat[::2], flat[1::2], strict=True)
    return tuple(Access(tensor, _optional(version)) for tensor, version in pairs)


def _writes(flat: tuple[int, ...]) -> tuple[Write, ...]:
    return tuple(Write(*triple) for triple in zip(flat[::3], flat[1::3], flat[2::3], strict=True))


def _state(raw: tuple[Any, ...], grad: str | None = None) -> State:
    tensor, version, requires_grad, is_leaf, grad_fn, node, retains_grad, storage = raw
    at = _optional(storage)
    return State(tensor, _optional(version), requires_grad, is_leaf, grad_fn, _optional(node), retains_grad, grad, at)


class Reader:
    """Builds a `Trace` from rows. Feed it with `read`, ask for `trace` at any time: a partial run is a trace too."""

    def __init__(self, script: model.Script, window: int = WINDOW) -> None:
        self.script = script
        self._versions = model.Versions("", "", "")
        self._sources: dict[str, str] = {}
        self._sites: list[model.Site] = []
        self._storages: list[model.Storage] = []
        self._tensors: list[model.Tensor] = []
        self._born: dict[int, int | None] = {}
        self._events: deque[model.Event] = deque(maxlen=window)
        self._count = 0
        self._started: dict[int, int] = {}
        self._regions: dict[int, int] = {}
        self._failures: list[model.Failure] = []
        self._claims: list[model.Claim] = []
        self._assignments: list[circumstances.Assignment] = []
        self._totals: Counter[tuple[int, str]] = Counter()
        self._end = model.End()
        self._noticed: dict[str, list[Any]] = {name: [] for name in inspection.KINDS}
        self._callbacks: dict[str, Any] = {"functions": [], "registrations": [], "runs": deque(maxlen=window)}
        self.finished = False

    def read(self, rows: Iterable[Any]) -> None:
        for row in rows:
            self._READERS[row[0]](self, *row[1:])

    def trace(self) -> model.Trace:
        return model.Trace(
            versions=self._versions,
            script=self.script,
            sources=self._sources,
            sites=tuple(self._sites),
            storages=tuple(self._storages),
            tensors=tuple(replace(t, created_by=self._born.get(t.id)) for t in self._tensors),
            events=tuple(self._events),
            failures=tuple(self._failures),
            end=self._end,
            claims=tuple(self._claims),
            assignments=tuple(self._assignments),
            totals=tuple(model.Total(site, op, n) for (site, op), n in self._totals.items()),
            callbacks=callbacks.Callbacks(**{name: tuple(found) for name, found in self._callbacks.items()}),
            inspection=inspection.Inspection(**{name: tuple(found) for name, found in self._noticed.items()}),
        )

    def _add(self, event: model.Event) -> None:
        self._events.append(event)
        self._count += 1

    def _read_versions(self, tensorlens: str, torch: str, python: str) -> None:
        self._versions = model.Versions(tensorlens, torch, python)

    def _read_site(
        self, number: int, file: str, function: str, position: tuple[int, ...], targets: Any, caller: int
    ) -> None:
        line, end_line, column, end_column = position
        lines = self._sources.get(file, "").splitlines()
        span = model.Span(
            file,
            line,
            column_of(lines[line - 1] if line <= len(lines) else "", column),
            end_line,
            column_of(lines[end_line - 1] if end_line <= len(lines) else "", end_column),
        )
        self._sites.append(model.Site(number, span, function, _optional(caller), targets))

    def _read_source(self, file: str, text: str) -> None:
        self._sources[file] = text

    def _read_storage(self, number: int, nbytes: int) -> None:
        self._storages.append(model.Storage(number, nbytes))

    def _read_tensor(self, number: int, storage: int, *rest: Any) -> None:
        counter, shape, dtype, device, type_name, base = rest
        where = _optional(storage)
        tensor = model.Tensor(number, where, counter, shape, dtype, device, type_name, _optional(base), None)
        self._tensors.append(tensor)

    def _read_call(self, op: str, site: int, inputs: Any, outputs: Any, writes: Any, states: Any, *rest: Any) -> None:
        first, last, mode, within = rest
        for tensor in inputs[::2]:
            self._born.setdefault(tensor, None)
        for tensor in outputs[::2]:
            self._born.setdefault(tensor, self._count)
        self._totals[site, op] += 1
        told = (_accesses(inputs), _accesses(outputs), _writes(writes), tuple(_state(s) for s in states))
        self._add(model.Call(self._count, op, site, *told, (first, last), MODES[mode], within))

    def _read_backward_start(self, token: int) -> None:
        self._started[token] = self._count

    def _read_backward(self, token: int, op: str, site: int, *rest: Any) -> None:
        roots, gradients, inputs, retain_graph, create_graph, failed = rest
        changes = tuple(
            Gradient(tensor, before, after, Write(*write) if write else None)
            for tensor, before, after, write in gradients
        )
        start = self._started.pop(token, self._count)
        if op != "autograd.grad":  # that one returns tensors and is a call as well
            self._totals[site, op] += 1
        self._add(
            model.Backward(
                self._count, op, site, _accesses(roots), changes, start, retain_graph, create_graph, failed, inputs
            )
        )

    def _read_mode(self, site: int, mode: int, cause: str, entering: bool, decorator: bool) -> None:
        self._add(model.GradMode(self._count, site, MODES[mode], cause, entering, decorator))

    def _read_region(self, token: int, site: int, kind: str, entering: bool, checkpoint: int) -> None:
        if token != NONE:
            self._regions[token] = self._count
        self._add(model.Region(self._count, site, kind, entering, self._regions.get(checkpoint)))

    def _read_change(self, site: int, name: str, before: str, after: str, checkpoint: int) -> None:
        where = _optional(site)
        self._add(model.Change(self._count, where, name, before, after, self._regions.get(checkpoint)))

    def _read_notice(self, site: int, category: str, message: str, op: str | None) -> None:
        self._add(model.Notice(self._count, _optional(site), category, message, op))

    def _read_gap(self, reason: str, site: int) -> None:
        where = _optional(site)
        for position, event in enumerate(self._events):
            if isinstance(event, model.Gap) and (event.reason, event.site) == (reason, where):
                self._events[position] = replace(event, count=event.count + 1)
                return
        self._add(model.Gap(self._count, reason, where))

    def _read_failure(self, kind: str, message: str, op: str, inputs: Any, *rest: Any) -> None:
        saved, stack, site = rest
        self._failures.append(
            model.Failure(
                index=self._count,
                kind=classify(message),
                type=kind,
                message=message,
                site=_optional(site),
                op=op or None,
                inputs=_accesses(inputs),
                saved=tuple(model.SavedTensor(*s) for s in saved),
                stack=stack,
                caught=True,
            )
        )

    def _read_values(self, failure: int, values: Any) -> None:
        told = tuple(
            circumstances.Value(name, kind, _optional(site), _optional(used)) for name, kind, site, used in values
        )
        if failure == NONE:
            last = self._events[-1] if self._events else None
            if isinstance(last, model.Notice):
                self._events[-1] = replace(last, values=told)
        elif failure < len(self._failures):
            found = self._failures[failure]
            self._failures[failure] = replace(found, values=(*found.values, *told))

    def _read_arguments(self, failure: int, arguments: Any) -> None:
        if failure < len(self._failures):
            told = tuple(circumstances.Argument(*argument) for argument in arguments)
            self._failures[failure] = replace(self._failures[failure], arguments=told)

    def _read_dead_ends(self, failure: int, nodes: Any, stopped: Any) -> None:
        if failure < len(self._failures):
            told = tuple(circumstances.Node(name, _optional(sequence)) for name, sequence in nodes)
            last = next((circumstances.Node(name, _optional(sequence)) for name, sequence in stopped), None)
            self._failures[failure] = replace(self._failures[failure], dead_ends=told, stopped_at=last)

    def _read_assignment(self, site: int, name: str, old: Any, new: Any, shared: bool) -> None:
        self._assignments.append(circumstances.Assignment(self._count, _optional(site), name, old, new, shared))

    def _read_claim(self, *fields: Any) -> None:
        self._claims.append(model.Claim(*fields))

    def _read_end(self, states: Any, bindings: Any) -> None:
        self._end = model.End(
            tuple(_state(state, grad) for *state, grad in states),
            tuple(model.Binding(*b) for b in bindings),
        )

    def _read_outcome(self, outcome: Any, exit_code: int | None, failure: int) -> None:
        self.finished = True
        ended_by = _optional(failure)
        if ended_by is not None:
            self._failures[ended_by] = replace(self._failures[ended_by], caught=False)
        self.script = replace(self.script, outcome=outcome, exit_code=exit_code, failure=ended_by)

    def _read_noticed(self, name: str, *fields: Any) -> None:
        self._noticed[name].append(inspection.KINDS[name](self._count, *fields))

    def _read_callback(self, name: str, *fields: Any) -> None:
        self._callbacks[name].append(callbacks.record(self._count, name, fields))

    _READERS = (
        _read_versions,
        _read_site,
        _read_source,
        _read_storage,
        _read_tensor,
        _read_call,
        _read_backward_start,
        _read_backward,
        _read_mode,
        _read_notice,
        _read_gap,
        _read_failure,
        _read_claim,
        _read_end,
        _read_outcome,
        _read_region,
        _read_change,
        _read_values,
        _read_assignment,
        _read_arguments,
        _read_dead_ends,
        _read_noticed,
        _read_callback,
    )
