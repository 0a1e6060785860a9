"""Gives every torch call to the fast path: the mode's `__torch_function__` and its tables.

What is the same each time a line runs (site, operation, shape, dtype, name of the grad_fn, ...) is written once, as a
call template. The call itself is then a few ints in `rows` (`tensorlens.journal.rows`). Nothing else is kept of a call,
so the garbage collector has nothing to walk. These calls take the fast path:

- ALIAS and READ: a read of `.data`, and one of `.grad` by the user's own line (`property_reads`).
- SIMPLE and VIEW: a C++ kernel with a derivative of its own that returns one new tensor, always on memory of its own
  or always a view of its first argument (`ops.call_kind`). The types of its arguments determine its overload and its
  grad_fn, so little has to be read from the result.
- ORDINARY: any other function that takes plain tensors and returns one new tensor or view, or writes its first argument
  and returns it. The rest is read from the result. Some calls of NORM, batch norm, are as well: `ops.kind_of_norm`.

Every other call takes the slow path, `SlowPath.call` and `SlowPath.finish`, which write whole rows.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from types import FrameType, MethodType
from typing import Any, Self

import torch
from torch.overrides import TorchFunctionMode

from tensorlens.journal.row_buffer import nothing_waits
from tensorlens.journal.rows import ALIAS, FOUND, NEW, NONE, WRITTEN, CallTemplateRow
from tensorlens.tracer.isolation.guard import ErrorGuard, Function
from tensorlens.tracer.isolation.torch_originals import data_ptr, untyped_storage
from tensorlens.tracer.recording import compiled, ops
from tensorlens.tracer.recording.fast_path import ATOMS, Kinds, SlowPathError, fast_path
from tensorlens.tracer.recording.graph_nodes import UNREAD
from tensorlens.tracer.recording.ops import ORDINARY, SIMPLE, SLOW, VIEW, Args, Kwargs
from tensorlens.tracer.recording.slow_path import SlowPath
from tensorlens.tracer.recording.tensor_ids import Entry, text_of, texts
from tensorlens.tracer.recording.thread_state import ModeOfThread

Key = tuple[Any, ...]
"""What the calls of a template have in common: (function, kinds of its arguments, graph, length of `inputs`, is leaf,
sequence numbers drawn, shape, dtype, device, ...). `graph` is 2 if the result requires grad, plus 1 under `no_grad`."""
Ordinary = tuple[Function, Kinds, FrameType]  # a function, its arguments without tensors, the frame that called it
Template = tuple[Key, int, bool, int]  # key, id, whether its function is one of `ops.RISKS`, site

_next_sequence = torch._C._autograd._get_sequence_nr
_grad_enabled = torch.is_grad_enabled
_ref = weakref.ref
_RESULTS = {ops.ALIAS: ALIAS, ops.READ: FOUND}  # what a call of each kind returns; others return NEW
KERNEL = 9  # length of a kernel's key; the keys of other functions are longer
MAX_TEMPLATES = 150_000  # the calls of a loop with other shapes in each round then take the slow path


class FastPathMode(SlowPath, TorchFunctionMode):
    """The mode that PyTorch calls, and the tables of the fast path.

    `mode` is what is on PyTorch's stack: the recorder, or in its place the compiled fast path, whose attributes PyTorch
    reads faster. In the program's threads it is a `_ThreadMode`.
    """

    def __init__(self, own_files: tuple[str, ...] = ()) -> None:
        super().__init__(own_files)
        self.templates: dict[Any, Template] = {}  # address of an instruction -> the last template there; empty in C
        self._keys: dict[Key, tuple[Key, int]] = {}  # many lines have equal keys: one object for these, and its number
        self._key_numbers = count()
        self._all_templates: dict[int, int] = {}  # their ids; `NONE`: such calls take the slow path
        self.template_ids = count(1)
        self.call_kinds: dict[Any, int] = {}
        path: Callable[..., Any] = MethodType(fast_path(self), self)
        self._mode: object = self
        self._thread = ModeOfThread()
        if compiled.FastPath is not None:
            self._mode = path = in_c = compiled.compiled_fast_path(self, path, ATOMS, texts)
            self.tensor_ids.in_c = self.sites.compiled = in_c
            self.rows.settle, self.rows.put, self._note_pause = in_c.settle, in_c.put, in_c.pause
        self.__torch_function__ = path  # type: ignore[method-assign]

    @property
    def mode(self) -> object:
        """The mode on the stack of this thread."""
        own = self._thread.mode
        return self._mode if own is None else own

    def begin_quiet(self, thread: int) -> None:
        """Records nothing of this thread, whose identifier is `thread`."""
        self.quiet_threads.add(thread)
        if self.mode is self._mode:  # the compiled fast path, which has one thread only
            self._note_pause(True)

    def end_quiet(self, thread: int) -> None:
        """Records this thread again."""
        self.quiet_threads.discard(thread)
        if self.mode is self._mode:
            self._note_pause(self.is_paused)

    @contextmanager
    def in_thread(self) -> Iterator[None]:
        """Records one of the program's threads."""
        self._thread.mode = mode = _ThreadMode(self)
        self.sites.shared.thread_begins()
        try:
            with self:
                yield
        finally:
            self.sites.shared.thread_ends()
            mode.__dict__.pop("__torch_function__", None)  # a reference cycle

    def __enter__(self) -> Self:
        torch._C._push_on_torch_function_stack(self.mode)
        return self

    def __exit__(self, *_: object) -> None:
        torch._C._pop_torch_function_stack()

    def __torch_function__(self, func: Function, types: object, args: Args = (), kwargs: Kwargs | None = None) -> Any:
        """Makes the call. Each recorder has its own; this one is for threads that have the mode after recording."""
        return func(*args, **(kwargs or {}))

    def close(self) -> None:
        """Breaks the reference cycles through the mode's own method, after recording."""
        self.rows.settle()
        self.rows.settle, self.rows.put, self.tensor_ids.in_c, self.sites.compiled = nothing_waits, None, None, None
        for name in self.__dict__.keys() & {"__torch_function__", "observes", "below"}:
            del self.__dict__[name]

    def call_kind(self, func: Function) -> int:
        """Finds the kind of a function that is called for the first time."""
        with ErrorGuard(self, "what a function does"):
            self.call_kinds[func] = ops.call_kind(func)
        return self.call_kinds.setdefault(func, SLOW)

    def find_template(self, frame: FrameType, key: Key, result: torch.Tensor, written: bool = False) -> Template:
        """Finds the template of a call at the user's innermost line, and remembers it for that line.

        Raises:
            SlowPathError: no user code made the call, or such calls can have no template.
        """
        by_id = self.sites.by_id
        while True:
            code = frame.f_code
            offsets = by_id[id(code)] if id(code) in by_id else self.sites.offsets(code)
            if offsets is not None:
                break
            if frame.f_back is None:
                raise SlowPathError
            frame = frame.f_back
        site = offsets.get(frame.f_lasti)
        if site is None:
            site = self.sites.site_of(frame)
        self.sites.shared.note(site)
        is_full = len(self._all_templates) >= MAX_TEMPLATES
        known = self._keys.get(key)
        if known is None:
            if is_full:
                raise SlowPathError
            known = self._keys.setdefault(key, (key, next(self._key_numbers)))
        key, number = known
        place = site << 32 | number
        found = self._all_templates.get(place)
        if found is None:
            if is_full or torch._is_functional_tensor(result) or self.looks_at_small(key[0], result):  # see `_memory`
                raise SlowPathError
            found = self._all_templates[place] = self._new_template(site, key, result, written)
        if found == NONE:
            raise SlowPathError
        template = key, found, key[0] in ops.RISKS, site
        if self.tensor_ids.in_c is None and id(code) in by_id and self.mode is self._mode:
            self.templates[id(code) + frame.f_lasti] = template  # in other threads, the main thread is yet to be noted
        return template

    def _new_template(self, site: int, key: Key, result: torch.Tensor, written: bool) -> int:
        """Writes the row of a new template; returns its id, or `NONE` if such calls can have none."""
        func, _, graph, inputs, leaf, drawn = key[:6]
        name, offset = None, 0
        if graph >= 2 and not leaf:
            first = _next_sequence() - drawn
            place = self.graph_nodes.place(_graph_kind(site, key), result, (first, first + drawn))
            if place is None or place is UNREAD:
                return NONE
            name, offset = place
        call_kind, base = self.call_kinds[func], result._base
        strange = graph == 0 and result.requires_grad  # a node without a derivative takes no sequence number
        strange |= call_kind == SIMPLE and bool(base is not None or result._version or self._shares_memory(result))
        if strange or (call_kind == VIEW and base is None):
            self.call_kinds[func] = ORDINARY  # PyTorch has changed: rely on nothing about this function
            raise SlowPathError
        number, nbytes = next(self.template_ids), untyped_storage(result).nbytes()
        self.rows.write(
            CallTemplateRow,
            template=number,
            op=ops.name_of(func),
            site=site,
            shape=tuple(result.shape),
            dtype=text_of(result.dtype),
            device=text_of(result.device),
            nbytes=nbytes,
            requires_grad=result.requires_grad,
            grad_fn=name,
            offset=offset,
            drawn=drawn,
            mode=graph % 2,
            inputs=(inputs - 1) // 2,
            result=WRITTEN if written else _RESULTS.get(call_kind, NEW),
        )
        return number

    def _shares_memory(self, result: torch.Tensor) -> bool:
        """Returns whether a live tensor is known at the address of this one: they may share memory."""
        entry = self.tensor_ids.blocks.get(data_ptr(result))
        return entry is not None and entry[0]() is not None

    def record_ordinary(
        self, called: Ordinary, result: torch.Tensor, tensors: list[torch.Tensor], inputs: list[int], first: int
    ) -> None:
        """Records a call that returned one plain tensor: a new one, or its first argument after a write.

        `inputs` are a place for the template's id, and (id, version before) of each of the `tensors`.

        Raises:
            SlowPathError: it returned something else.
            RuntimeError: `result` has no version or no memory.
        """
        func, kinds, frame = called
        drawn = _next_sequence() - first
        version, base = result._version, result._base
        entry = self.tensor_ids.known.get(id(result))
        written = entry is not None and entry[0]() is result
        graph, leaf = 0, False
        if result.requires_grad:
            graph, leaf = 2 if _grad_enabled() else 3, result.is_leaf
            usual = (written or (not drawn and base is None)) if leaf else drawn
            if not usual or (written and not leaf and result.retains_grad):
                raise SlowPathError
        elif not _grad_enabled():
            graph = 1
        changed = [n for n, tensor in enumerate(tensors) if tensor._version != inputs[2 * n + 2]]
        owner = None
        if written:
            if changed != [0] or tensors[0] is not result or base is not None:
                raise SlowPathError
        elif changed or (entry is not None and entry[0]() is not None):
            raise SlowPathError
        elif base is None:
            if self._shares_memory(result):
                raise SlowPathError
        else:
            owner = self.tensor_ids.entry(base)
        shared, sizes = owner is not None or written, tensors[0].shape if tensors else None
        key = (func, kinds, graph, len(inputs), leaf, drawn, result.shape, result.dtype, result.device, shared, sizes)
        template = self.templates.get(id(frame.f_code) + frame.f_lasti)
        if template is None or template[0] != key:
            template = self.find_template(frame, key, result, written)
        inputs[0] = template[1]
        if written and entry is not None:
            inputs += (entry[1], NONE, version, first)
        else:
            number = self._add(result, owner)
            if leaf:
                self.leaves[number] = self.tensor_ids.known[id(result)][0]
            inputs += (number, NONE if owner is None else owner[1], version, first)
        self.rows.write_call(inputs)

    def _add(self, result: torch.Tensor, owner: Entry | None) -> int:
        """Gives a new tensor its id; `owner` is its base."""
        number = next(self.tensor_ids.numbers)
        counter, storage = (number, number) if owner is None else owner[2:]
        entry = self.tensor_ids.known[id(result)] = (_ref(result), number, counter, storage)
        if owner is None:
            self.tensor_ids.blocks[data_ptr(result)] = entry
        if number >= self.tensor_ids.due:
            self.tensor_ids.sweep(number)
        return number

    def is_watched(self, tensors: list[torch.Tensor], first: int, frame: FrameType) -> bool:
        """Returns whether a call that has ended concerns memory that can be written past a version counter."""
        return self.saved_tensors.is_watched(tensors, first, frame)

    def finish_on_slow_path(
        self,
        called: tuple[Function, Args, Kwargs | None, FrameType | None],
        result: object,
        tensors: list[torch.Tensor],
        inputs: list[int],
        first: int,
    ) -> None:
        """Writes the whole row of a call that the fast path has made. `called`: function, arguments, calling frame."""
        func, args, kwargs, frame = called
        kwargs = kwargs or {}
        ops.note_risk(self, func, args, kwargs)
        self.finish((func, "", frame, "out" in kwargs, False, (args, kwargs)), result, tensors, inputs, first)

    def note_exception(self, error: BaseException, func: Function, inputs: list[int], frame: FrameType) -> None:
        """Records the exception of a call that the compiled fast path has made."""
        self.fail(error, func, inputs, frame)


class _ThreadMode(TorchFunctionMode):
    """The mode of one of the program's threads."""

    def __init__(self, recorder: FastPathMode) -> None:
        super().__init__()

        def frame_of_call(depth: int) -> FrameType:
            frame = sys._getframe(depth + 1)
            recorder.sites.site_or_outside(frame)  # notes that this thread runs it
            return frame

        self.__torch_function__ = MethodType(fast_path(recorder, frame_of_call), self)  # type: ignore[method-assign]


def _graph_kind(site: int, key: Key) -> tuple[Any, ...]:
    """Returns what calls with the same grad_fn have in common: the key without sizes."""
    func, kinds, graph, inputs, _, drawn, shape = key[:7]
    if len(key) == KERNEL:  # its overload decides, whatever the line
        return func, kinds, inputs, drawn
    shared, first_shape = key[9:]
    dimensions = None if first_shape is None else len(first_shape)
    return site, func, kinds, graph, inputs, drawn, shared, len(shape), dimensions, shape == first_shape
