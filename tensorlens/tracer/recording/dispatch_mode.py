"""The path that every op takes: the mode's `__torch_function__`, and the short way through it.

What never varies from one run of a line to the next (site, op, shape, dtype, grad_fn's name, ...) is written once, as a
PLAN row; a call is then a run of ints in `rows` (`tensorlens.journal.rows` says which). Nothing else is kept of a
call, so the garbage collector has nothing to walk. Two kinds of calls go this way:

- a *simple* one, or a *view*: a kernel of torch's C++ side that has a derivative of its own and returns one new tensor,
  always on memory of its own, or always a view of its first argument (`ops.call_kind`). Its types of arguments fix its
  overload and so its grad_fn, hence little has to be read from the result;
- an *ordinary* one: any other function that takes plain tensors and returns one new tensor or view, or writes its first
  argument and returns it. What is not known beforehand is read from the result.

Whatever differs takes the long way, `Recorder.call` and `Recorder.finish`, which write whole rows.
"""

from __future__ import annotations

import weakref
from itertools import count
from types import MethodType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from tensorlens.journal.rows import NEW, NONE, PLAN, WRITTEN
from tensorlens.tracer.isolation.guard import ErrorGuard
from tensorlens.tracer.isolation.torch_originals import data_ptr, untyped_storage
from tensorlens.tracer.recording import compiled, ops
from tensorlens.tracer.recording.fast_path import ATOMS, SlowPathError, fast_path
from tensorlens.tracer.recording.graph_nodes import UNREAD
from tensorlens.tracer.recording.ops import ORDINARY, SIMPLE, SLOW, VIEW
from tensorlens.tracer.recording.slow_path import SlowPath
from tensorlens.tracer.recording.tensor_ids import Entry, text_of

Key = tuple[Any, ...]  # all that a template stands for
Template = tuple[Key, int, bool]  # its id; whether its function is one of `ops.RISKS`

_next_sequence = torch._C._autograd._get_sequence_nr
_grad_enabled = torch.is_grad_enabled
_ref = weakref.ref
KERNEL = 9  # items of the key of a kernel; those of other functions have more
MAX_TEMPLATES = 50_000  # shapes that differ at every turn of a loop are not worth one each


class FastPathMode(SlowPath, TorchFunctionMode):
    """What `Recorder` builds on: the tables of the short way, and the short way itself."""

    def __init__(self, own_files: tuple[str, ...] = ()) -> None:
        super().__init__(own_files)
        self.templates: dict[
            Any, Template
        ] = {}  # where an instruction lies in memory -> the template that was right there last
        self._all_templates: dict[Any, Template | None] = {}  # None: such calls take the long way
        self.template_ids = count(1)
        self.call_kinds: dict[Any, int] = {}
        way: Any = MethodType(fast_path(self), self)
        if compiled.FastPath is not None:
            way = compiled.compiled_fast_path(self, way, ATOMS)
        self.__torch_function__ = way  # type: ignore[method-assign]

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Each instance has its own; this is for threads that still have the mode when recording is over."""
        return func(*args, **(kwargs or {}))

    def close(self) -> None:
        """Let go of the cycle through the mode's own method, once recording is over."""
        self.__dict__.pop("__torch_function__", None)

    def call_kind(self, func: Any) -> int:
        """Which way a function met for the first time takes."""
        with ErrorGuard(self, "what a function does"):
            self.call_kinds[func] = ops.call_kind(func)
        return self.call_kinds.setdefault(func, SLOW)

    def find_template(self, frame: Any, key: Key, result: Any, written: bool = False) -> Template:
        """The template of a call at the user's innermost line, which is tried first at that line from now on.

        Raises:
            LongWayError: no code of the user's made the call, or no template can stand for such calls.
        """
        by_id = self.sites.by_id
        while True:
            code = frame.f_code
            offsets = by_id[id(code)] if id(code) in by_id else self.sites.offsets(code)
            if offsets is not None:
                break
            frame = frame.f_back
            if frame is None:
                raise SlowPathError
        site = offsets.get(frame.f_lasti)
        if site is None:
            site = self.sites.site_of(frame)
        template = self._all_templates.get((site, key))
        if template is None and (site, key) not in self._all_templates:
            if len(self._all_templates) >= MAX_TEMPLATES or torch._is_functional_tensor(
                result
            ):  # see `tensor_ids._memory`
                raise SlowPathError
            template = self._all_templates[site, key] = self._new_template(site, key, result, written)
        if template is None:
            raise SlowPathError
        if id(code) in by_id:
            self.templates[id(code) + frame.f_lasti] = template
        return template

    def _new_template(self, site: int, key: Key, result: Any, written: bool) -> Template | None:
        func, _, graph, inputs, leaf, drawn = key[:6]
        name, offset = None, 0
        if graph >= 2 and not leaf:
            first = _next_sequence() - drawn
            place = self.graph_nodes.place(_graph_kind(site, key), result, (first, first + drawn))
            if place is None or place is UNREAD:
                return None
            name, offset = place
        way, base = self.call_kinds[func], result._base
        strange = graph == 0 and result.requires_grad  # a node that can't be differentiated draws no sequence number
        strange |= way == SIMPLE and bool(base is not None or result._version or self._is_held(result))
        if strange or (way == VIEW and base is None):
            self.call_kinds[func] = ORDINARY  # torch has changed: believe nothing about this function
            raise SlowPathError
        made = (tuple(result.shape), text_of(result.dtype), text_of(result.device), untyped_storage(result).nbytes())
        number = next(self.template_ids)
        template = (
            PLAN,
            number,
            ops.name_of(func),
            site,
            *made,
            result.requires_grad,
            name,
            offset,
            drawn,
            graph % 2,
        )
        self.rows.append((*template, (inputs - 1) // 2, WRITTEN if written else NEW))
        return key, number, func in ops.RISKS

    def _is_held(self, result: Any) -> bool:
        """Whether a tensor that is alive was met at the address of this one: they share memory, perhaps."""
        entry = self.tensor_ids.blocks.get(data_ptr(result))
        return entry is not None and entry[0]() is not None

    def record_ordinary(self, called: Any, result: Any, tensors: list[Any], inputs: list[int], first: int) -> None:
        """Write down a call that returned one plain tensor: a new one, or its first argument, written. `called`: the
        function, the kinds of its arguments that are no tensors, the frame that called it.

        Raises:
            LongWayError: it is neither.
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
            if not (written if leaf else drawn) or (written and not leaf and result.retains_grad):
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
            if self._is_held(result):
                raise SlowPathError
        else:
            owner = self.tensor_ids.entry(base)
        shared, given = owner is not None or written, tensors[0].shape if tensors else None
        key = (func, kinds, graph, len(inputs), leaf, drawn, result.shape, result.dtype, result.device, shared, given)
        template = self.templates.get(id(frame.f_code) + frame.f_lasti)
        inputs[0] = (template if template and template[0] == key else self.find_template(frame, key, result, written))[
            1
        ]
        if written and entry is not None:
            inputs += (entry[1], NONE, version, first)
        else:
            inputs += (self._add(result, owner), NONE if owner is None else owner[1], version, first)
        self.rows.extend(inputs)

    def _add(self, result: Any, owner: Entry | None) -> int:
        """Give a new tensor its id; `owner` is its base."""
        number = next(self.tensor_ids.numbers)
        counter, storage = (number, number) if owner is None else owner[2:]
        entry = self.tensor_ids.known[id(result)] = (_ref(result), number, counter, storage)
        if owner is None:
            self.tensor_ids.blocks[data_ptr(result)] = entry
        if number >= self.tensor_ids.due:
            self.tensor_ids.sweep(number)
        return number

    def is_watched(self, tensors: list[torch.Tensor], first: int, frame: Any) -> bool:
        """Returns whether a call that has ended concerns memory that can be written past a version counter."""
        return self.saved_tensors.is_watched(tensors, first, frame)

    def finish_on_slow_path(self, called: Any, result: Any, tensors: Any, inputs: Any, first: int) -> None:
        """The long way after a call by `FastPath`. `called`: the function, its arguments, the frame that called it."""
        func, args, kwargs, frame = called
        kwargs = kwargs or {}
        ops.note_risk(self, func, args, kwargs)
        self.finish((func, "", frame, "out" in kwargs, False, (args, kwargs)), result, tensors, inputs, first)

    def note_exception(self, error: BaseException, func: Any, inputs: list[int], frame: Any) -> None:
        """Note the exception of a call by `FastPath`."""
        self.fail(error, func, inputs, frame)


def _graph_kind(site: int, key: Key) -> tuple[Any, ...]:
    """What calls with their node at the same place have in common: all that a template stands for, but sizes."""
    func, kinds, graph, inputs, _, drawn, shape = key[:7]
    if len(key) == KERNEL:  # its overload decides, whatever the line
        return func, kinds, inputs, drawn
    shared, given = key[9:]
    dimensions = None if given is None else len(given)
    return site, func, kinds, graph, inputs, drawn, shared, len(shape), dimensions, shape == given
