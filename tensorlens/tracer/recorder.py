"""The mode that sees torch calls and writes them down as raw rows. This file is the path that every op takes.

Rows are plain tuples of ints and strings (`tensorlens.journal` says which and turns them into a `Trace`); nothing in
them keeps a tensor, a gradient or a node alive. What the mode can't see has its ways in in `patches.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.utils.checkpoint
from torch.overrides import TorchFunctionMode

from tensorlens.journal import ARGUMENTS, CALL, FAILURE, GAP, VALUES
from tensorlens.tracer import ops
from tensorlens.tracer.callbacks import Callbacks
from tensorlens.tracer.frames import Sites
from tensorlens.tracer.identity import NONE, Identity
from tensorlens.tracer.refusal import named_arguments, refused_call
from tensorlens.tracer.values import plain_values

_next_sequence = torch._C._autograd._get_sequence_nr
_grad_enabled = torch.is_grad_enabled
_inference = torch.is_inference_mode_enabled
_plain = {torch.Tensor, torch.nn.Parameter}
_getframe = sys._getframe
_ATOMS = {int, float, str, bool, slice, type(None), torch.dtype, torch.device, torch.Size}
MAX_FAILURES = 200
_STOP = torch.utils.checkpoint._StopRecomputationError  # how a recomputation ends early: no failure
Called = tuple[Any, str, Any, bool, bool]


def version_of(tensor: torch.Tensor) -> int:
    """The tensor's version; `NONE` for an inference tensor, which has none."""
    try:
        return tensor._version
    except RuntimeError:
        return NONE


def gather(value: Any, found: list[torch.Tensor], depth: int = 3) -> None:
    """Append the tensors in `value` to `found`: itself, or inside lists, tuples and dicts."""
    if isinstance(value, torch.Tensor):
        found.append(value)
    elif depth and isinstance(value, (list, tuple)):
        for item in value:
            gather(item, found, depth - 1)
    elif depth and isinstance(value, dict):
        for item in value.values():
            gather(item, found, depth - 1)


class Recorder(TorchFunctionMode):
    """Records every torch call made while it is active. `rows` is the only thing that it produces."""

    def __init__(self, own_files: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.rows: list[Any] = []
        self.sites = Sites(self.rows, own_files)
        self.identity = Identity(self.rows)
        self.leaves: dict[int, Any] = {}  # tensor id -> weakref, of all that a backward pass may give a gradient
        self.paused = False
        self.within = ""  # the optimizer step that is running
        self.untracked: Any = None  # watches writes past the version counters (`untracked.Untracked`)
        self.attributes: Any = None  # tensors kept as attributes of `ctx` (`leftovers.Attributes`)
        self.risky = False  # whether an operation without a derivative everywhere was recorded since the last backward
        self._met: list[Any] = []  # states of tensors first met as inputs, for the next row
        self.failures = 0
        self.last_failure: tuple[int, object] = (0, None)  # (id, token) of the exception noted last
        self.last_warning = ""
        self.valued: set[int] = set()  # sites whose plain values a warning has told
        self.callbacks = Callbacks(self)
        self.leaving: Callable[[int], None] = lambda status: None  # called when the process leaves by `os._exit`

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in ops.QUIET or self.paused:
            return func(*args, **kwargs)
        special = ops.SPECIAL.get(func)
        if special is not None:
            return special(self, func, args, kwargs)
        return self.call(func, args, kwargs, _getframe(1))

    def call(self, func: Any, args: Any, kwargs: Any, frame: Any, name: str = "") -> Any:
        """Run `func` and write a CALL row; on an exception a FAILURE row, and the exception goes on its way."""
        tensors: list[torch.Tensor] = []
        plain = 0
        for value in args:
            if type(value) in _plain:
                tensors.append(value)
                plain += 1
            elif type(value) not in _ATOMS:
                gather(value, tensors)
        if kwargs:
            gather(kwargs, tensors)
        odd = len(tensors) > plain
        try:
            inputs = self.accesses(tensors)
        except Exception as trouble:  # ours, never the user's
            self.gap(f"a call could not be recorded ({type(trouble).__name__}: {trouble})", frame)
            return func(*args, **kwargs)
        before = _next_sequence()
        try:
            result = func(*args, **kwargs)
        except BaseException as error:
            self.fail(error, name or ops.name_of(func), inputs, frame)
            raise
        self.finish((func, name, frame, "out" in kwargs, odd), result, tensors, inputs, before)
        return result

    def finish(self, called: Called, result: Any, tensors: Any, inputs: Any, before: int) -> None:
        """Write the CALL row of a call that returned. `called`: the function, a name to record it under ("" for its
        own), the frame that called it, whether `out=` was given, and whether some tensor may be of a subclass."""
        after = _next_sequence()
        try:
            if type(result) in _plain and not called[4]:
                self._record(called, result, tensors, inputs, (before, after))
            else:  # a subclass's own `__torch_function__` would run for every fact that is asked
                with torch._C.DisableTorchFunctionSubclass():
                    self._record(called, result, tensors, inputs, (before, after))
        except Exception as trouble:  # ours, never the user's: say that the call was not seen
            self.gap(f"a call could not be recorded ({type(trouble).__name__}: {trouble})", called[2])

    def _record(self, called: Called, result: Any, tensors: Any, inputs: Any, nodes: Any) -> None:
        func, name, frame, out, _ = called
        writes: tuple[int, ...] = ()
        for tensor, version in zip(tensors, inputs[1::2], strict=True):
            if version != NONE and tensor._version != version:
                writes = self._writes(tensors, inputs, out)
                break
        outputs, states = self._outputs(func, result, inputs)
        if writes:
            states += self._written_states(tensors, writes, outputs)
        elif func in ops.STATEFUL and tensors:
            states.append(self.state(tensors[0]))
        if self._met:
            states = self._met + states
            self._met = []
        mode = 2 if _inference() else (0 if _grad_enabled() else 1)
        op, site = name or ops.name_of(func), self.sites.known(frame)
        self.rows.append((CALL, op, site, tuple(inputs), outputs, writes, tuple(states), *nodes, mode, self.within))

    def accesses(self, tensors: list[torch.Tensor]) -> list[int]:
        """(tensor id, version) of each tensor, flat; a tensor first met here is given its id."""
        known = self.identity.known
        flat: list[int] = []
        for tensor in tensors:
            entry = known.get(id(tensor))
            if entry is not None and entry[0]() is tensor:
                flat.append(entry[1])
            else:
                flat.append(self._meet_input(tensor))
            try:
                flat.append(tensor._version)
            except RuntimeError:
                flat.append(NONE)
        return flat

    def _meet_input(self, tensor: torch.Tensor) -> int:
        with torch._C.DisableTorchFunctionSubclass():
            number = self.identity.meet(tensor)
            self._met.append(self.state(tensor, number))
        return number

    def _writes(self, tensors: list[torch.Tensor], inputs: list[int], out: bool) -> tuple[int, ...]:
        """(tensor id, version before, version after), flat, of each argument whose version moved.

        Views of one base share a counter, so one write may move several arguments: the one named is `out=` where
        there is one, else the first (the receiver of a method).
        """
        moved: dict[int, tuple[int, int, int]] = {}
        for position, tensor in enumerate(tensors):
            number, before = inputs[2 * position], inputs[2 * position + 1]
            if before == NONE:
                continue
            after = version_of(tensor)
            if after > before:
                counter = self.identity.counter(number)
                if out or counter not in moved:
                    moved[counter] = (number, before, after)
        return tuple(value for write in moved.values() for value in write)

    def _outputs(self, func: Any, result: Any, inputs: list[int]) -> tuple[tuple[int, ...], list[Any]]:
        found: list[torch.Tensor] = [result] if type(result) in _plain else []
        if not found:
            gather(result, found)
        flat: list[int] = []
        states: list[Any] = []
        for tensor in found:
            number, storage = self.identity.of(tensor), None
            if number is None:
                shares = func in ops.SHARES_COUNTER and inputs
                number = self.identity.add(tensor, inputs[0] if shares else NONE)
                storage = self.identity.latest
            state = self.state(tensor, number, storage)
            flat += (number, state[1])
            states.append(state)
        return tuple(flat), states

    def _written_states(self, tensors: Any, writes: tuple[int, ...], outputs: tuple[int, ...]) -> list[Any]:
        """States of what was written and of the bases of written views, where they are not outputs already."""
        done = set(outputs[::2])
        states = []
        for tensor in tensors:
            number = self.identity.meet(tensor)
            if number in done or number not in writes[::3]:
                continue
            done.add(number)
            states.append(self.state(tensor, number))
        for tensor in tensors:
            base = tensor._base
            if base is not None and (number := self.identity.meet(base)) not in done and tensor is not base:
                done.add(number)
                states.append(self.state(base, number))
        return states

    def state(self, tensor: torch.Tensor, number: int | None = None, storage: int | None = None) -> tuple[Any, ...]:
        """(id, version, requires_grad, is_leaf, grad_fn, node, retains_grad, storage) of a tensor now."""
        number = self.identity.meet(tensor) if number is None else number
        storage = self.identity.storage(tensor) if storage is None else storage
        if not tensor.requires_grad:
            return number, version_of(tensor), False, True, None, NONE, False, storage
        try:
            node = tensor.grad_fn
            leaf = node is None
        except RuntimeError:  # a view that a write to its base invalidated
            return number, version_of(tensor), True, False, None, NONE, False, storage
        self._note_leaf(number, tensor)
        if node is None:
            return number, version_of(tensor), True, leaf, None, NONE, False, storage
        sequence = node._sequence_nr()
        return number, version_of(tensor), True, leaf, node.name(), sequence, tensor.retains_grad, storage

    def _note_leaf(self, number: int, tensor: torch.Tensor) -> None:
        if tensor.requires_grad and (tensor.is_leaf or tensor.retains_grad) and number not in self.leaves:
            self.leaves[number] = self.identity.known[id(tensor)][0]

    def fail(self, error: BaseException, op: str, inputs: Any, frame: Any, saved: tuple[Any, ...] = ()) -> None:
        """Write a FAILURE row for an exception on its way to the user's code, once."""
        if self._has_noted(error) or self.failures >= MAX_FAILURES or isinstance(error, _STOP):
            return
        self.last_failure = (id(error), token_of(error))
        self.failures += 1
        stack = self.sites.stack(frame)
        inside = self.sites.traceback_stack(error.__traceback__)  # user code that the call ran: a hook, a `backward`
        site = stack[-1] if stack else NONE
        row = (FAILURE, type(error).__name__, safe_text(error), op, tuple(inputs), saved, (*stack, *inside), site)
        self.rows.append(row)

    def note_ending(self, error: BaseException) -> int:
        """The number of the FAILURE row of the exception that ends the run, written now if no torch call raised it."""
        if not self._has_noted(error):
            stack = self.sites.traceback_stack(error.__traceback__)
            if isinstance(error, SyntaxError) and error.filename and self.sites.is_user(error.filename):
                stack = (*stack, self.sites.of_syntax_error(error))
            site = stack[-1] if stack else NONE
            op, tensors = refused_call(self.sites, error.__traceback__)
            inputs = tuple(self.accesses(tensors))
            self.rows.append((FAILURE, type(error).__name__, safe_text(error), op, inputs, (), stack, site))
            self.last_failure = (id(error), token_of(error))
            self.failures += 1
        arguments = [(name, self.identity.meet(t)) for name, t in named_arguments(self.sites, error.__traceback__)]
        if arguments:
            self.rows.append((ARGUMENTS, self.failures - 1, tuple(arguments)))
        values = plain_values(self.sites, error.__traceback__)
        if values:
            self.rows.append((VALUES, self.failures - 1, values))
        return self.failures - 1

    def _has_noted(self, error: BaseException) -> bool:
        return id(error) == self.last_failure[0] and token_of(error) is self.last_failure[1]

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Record nothing while this lasts."""
        before, self.paused = self.paused, True
        try:
            yield
        finally:
            self.paused = before

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Take the mode off the stack while this lasts, if it is on top, and record nothing."""
        depth = torch._C._len_torch_function_stack()
        on_top = depth > 0 and torch._C._get_function_stack_at(depth - 1) is self
        with self.quiet():
            if not on_top:
                yield
                return
            torch._C._pop_torch_function_stack()
            try:
                yield
            finally:
                torch._C._push_on_torch_function_stack(self)

    def gap(self, reason: str, frame: Any = None) -> None:
        """Say that something can't be seen."""
        self.rows.append((GAP, reason, self.sites.of(frame or _getframe(1))))


def token_of(error: BaseException) -> object:
    """What a later exception at the same address doesn't have; held, it keeps no tensor alive."""
    arguments: tuple[object, ...] = BaseException.__dict__["args"].__get__(error)
    return arguments if arguments and all(isinstance(value, str | int) for value in arguments) else type(error)


def safe_text(error: BaseException) -> str:
    """`str(error)`, also where the user's own `__str__` raises."""
    try:
        return str(error)
    except Exception:
        return f"<{type(error).__name__} whose text can't be read>"
