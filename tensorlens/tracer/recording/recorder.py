"""The long way of a torch call, for whatever `hot` has no short way for, and what else becomes a row.

Rows are plain tuples of ints and strings (`tensorlens.journal.rows` says which and turns them into a `Trace`); nothing
in them keeps a tensor, a gradient or a node alive. What the mode can't see has its ways in in `patches.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch

from tensorlens.journal.rows import CALL, GAP, NONE, WITHIN
from tensorlens.tracer.isolation.guard import reraise_user_error, safe_text
from tensorlens.tracer.isolation.module_tree import collect_tensors
from tensorlens.tracer.recording import ops
from tensorlens.tracer.recording.dispatch_mode import UNWRITTEN, Called
from tensorlens.tracer.recording.exceptions import ExceptionRows
from tensorlens.tracer.recording.fast_path import ATOMS
from tensorlens.tracer.recording.graph_nodes import UNCHANGED, Node, kinds_of, read_node
from tensorlens.tracer.recording.tensor_ids import PLAIN, Entry
from tensorlens.tracer.recording.user_callbacks import UserCallbacks

__all__ = ["Recorder", "collect_tensors", "current_mode", "version_of"]

_next_sequence = torch._C._autograd._get_sequence_nr
_grad_enabled = torch.is_grad_enabled
_inference = torch.is_inference_mode_enabled
_getframe = sys._getframe
Kind = tuple[Any, ...]  # a function or the name of one, the site that calls it, what it is given


def current_mode() -> int:
    """Returns the mode that calls run in, as rows name it: 0 records gradients, 1 is `no_grad`, 2 `inference_mode`."""
    return 2 if _inference() else (0 if _grad_enabled() else 1)


def version_of(tensor: torch.Tensor) -> int:
    """The tensor's version; `NONE` for an inference tensor, which has none."""
    try:
        if type(tensor) in PLAIN:
            return tensor._version
        with torch._C.DisableTorchFunctionSubclass():  # a subclass may watch what is asked of it
            return tensor._version
    except RuntimeError:
        return NONE


class Recorder(ExceptionRows):
    """Records every torch call made while it is active. `rows` is the only thing that it produces."""

    def __init__(self, own_files: tuple[str, ...] = ()) -> None:
        super().__init__(own_files)
        self.sites.sightings.number_of = self.identity.of
        self.leaves: dict[int, Any] = {}  # tensor id -> weakref, of all that a backward pass may give a gradient
        self._within = ""
        self.untracked: Any = None  # watches writes past the version counters (`untracked.Untracked`)
        self.training: Any = None  # the bookkeeping of optimizers and modules (`training.Training`)
        self.steps: Any = None  # the optimizer steps that run just now (`steps.Steps`)
        self.samples: Any = None  # of what `--reference` compares (`samples.Samples`)
        self.attributes: Any = None  # tensors kept as attributes of `ctx` (`leftovers.Attributes`)
        self.last_warning = ""
        self.valued: set[int] = set()  # sites whose plain values a warning has told
        self.callbacks = UserCallbacks(self)
        self.leaving: Callable[[int], None] = lambda status: None  # called when the process leaves by `os._exit`

    @property
    def within(self) -> str:
        """The optimizer step that is running, or ""."""
        return self._within

    @within.setter
    def within(self, step: str) -> None:
        if step != self._within:
            self._within = step
            self.rows.append((WITHIN, step))

    def is_watched(self, tensors: list[Any], first: int, frame: Any) -> bool:
        return bool(self.untracked.concerns(tensors, first, frame))

    def call(self, func: Any, args: Any, kwargs: Any, frame: Any, name: str = "") -> Any:
        """Run `func` and write a CALL row; on an exception a FAILURE row, and the exception goes on its way."""
        tensors: list[torch.Tensor] = []
        plain = 0
        inputs: list[int] | None = None
        try:
            for value in args:
                if type(value) in PLAIN:
                    tensors.append(value)
                    plain += 1
                elif type(value) not in ATOMS:
                    collect_tensors(value, tensors)
            if kwargs:
                collect_tensors(kwargs, tensors)
            inputs = self.accesses(tensors)
            ops.note_risk(self, func, args, kwargs)
        except Exception as trouble:  # ours, never the user's
            self.trouble("a call", trouble, frame)
        if inputs is None:
            return func(*args, **kwargs)
        odd = len(tensors) > plain
        before = _next_sequence()
        try:
            result = func(*args, **kwargs)
        except BaseException as error:
            try:
                self.fail(error, name or func, inputs, frame)
            except RecursionError:  # ours: there is no room left to note it
                pass
            raise
        self.finish((func, name, frame, "out" in kwargs, odd, (args, kwargs)), result, tensors, inputs, before)
        return result

    def finish(self, called: Called, result: Any, tensors: Any, inputs: Any, before: int) -> None:
        """Write the CALL row of a call that returned. `called`: the function, a name to record it under ("" for its
        own), the frame that called it, whether `out=` was given, whether some tensor may be of a subclass, and what
        it was given."""
        after = _next_sequence()
        try:
            if type(result) in PLAIN and not called[4]:
                self._record(called, result, tensors, inputs, (before, after))
            else:  # a subclass's own `__torch_function__` would run for every fact that is asked
                with torch._C.DisableTorchFunctionSubclass():
                    self._record(called, result, tensors, inputs, (before, after))
        except Exception as trouble:  # ours, never the user's: say that the call was not seen
            self.trouble("a call", trouble, called[2])

    def _record(self, called: Called, result: Any, tensors: Any, inputs: Any, nodes: Any) -> None:
        func, name, frame, out, _, given = called
        writes: tuple[int, ...] = ()
        if func in ops.MOVING and tensors:
            self.identity.moved(tensors[0])
        for tensor, version in zip(tensors, inputs[1::2], strict=True):
            if version != NONE and tensor._version != version:
                writes = self._writes(tensors, inputs, out)
                break
        site = self.sites.known(frame)
        kind = (name or func, site, kinds_of(given) if nodes[0] < nodes[1] else ())
        outputs, states = self._outputs(func, kind, result, tensors, nodes)
        if writes:
            states += self._written_states(kind, tensors, writes, outputs, nodes)
        elif func in ops.STATEFUL and tensors:
            states.append(self.state(tensors[0], node=UNCHANGED))
        if self.unwritten:
            states = self.unwritten + states
            self.unwritten.clear()
            self.detours.discard(UNWRITTEN)
        op = name or ops.name_of(func)
        self.rows.append((CALL, op, site, tuple(inputs), outputs, writes, tuple(states), *nodes, current_mode()))

    def note_alias(self, op: str, source: torch.Tensor, result: torch.Tensor, frame: Any) -> None:
        """Write the CALL row of a read of `.data`: `result` lies where `source` lies, with a version of its own."""
        _, number, _, storage = self.identity.entry(source)
        access = self.identity.add_alias(result, storage)[1], version_of(result)
        nodes = (_next_sequence(),) * 2
        state = (*access, False, True, None, NONE, False, storage)
        inputs = (number, version_of(source))
        self.rows.append((CALL, op, self.sites.known(frame), inputs, access, (), (state,), *nodes, current_mode()))

    def accesses(self, tensors: list[torch.Tensor]) -> list[int]:
        """(tensor id, version) of each tensor, flat; a tensor first met here is given its id."""
        known = self.identity.known
        flat: list[int] = []
        for tensor in tensors:
            entry = known.get(id(tensor))
            if entry is None or entry[0]() is not tensor:
                entry = self.met(tensor)
            flat += (entry[1], version_of(tensor))
        return flat

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
                counter = self.identity.entry(tensor)[2]
                if out or counter not in moved:
                    moved[counter] = (number, before, after)
        return tuple(value for write in moved.values() for value in write)

    def _outputs(
        self, func: Any, kind: Kind, result: Any, tensors: Any, nodes: tuple[int, int]
    ) -> tuple[tuple[int, ...], list[Any]]:
        found: list[torch.Tensor] = [result] if type(result) in PLAIN else []
        if not found:
            collect_tensors(result, found)
        flat: list[int] = []
        states: list[Any] = []
        for tensor, node in zip(found, self._nodes_of((*kind, "output"), found, nodes), strict=True):
            entry = self.identity.known.get(id(tensor))
            is_new = entry is None or entry[0]() is not tensor
            if entry is None or is_new:
                shares = func in ops.SHARES_COUNTER and tensors
                entry = self.identity.add(tensor, self.identity.entry(tensors[0]) if shares else None)
            state = self.state(tensor, entry, None if is_new and node is UNCHANGED else node)
            flat += (entry[1], state[1])
            states.append(state)
        return tuple(flat), states

    def _written_states(
        self, kind: Kind, tensors: Any, writes: tuple[int, ...], outputs: tuple[int, ...], nodes: tuple[int, int]
    ) -> list[Any]:
        """States of what was written and of the bases of written views, where they are not outputs already."""
        done, written = set(outputs[::2]), set(writes[::3])
        changed: list[tuple[torch.Tensor, Entry]] = []
        for tensor in tensors:
            entry = self.identity.entry(tensor)
            if entry[1] not in done and entry[1] in written:
                done.add(entry[1])
                changed.append((tensor, entry))
        for tensor in tensors:
            base = tensor._base
            if base is not None and (entry := self.identity.entry(base))[1] not in done and tensor is not base:
                done.add(entry[1])
                changed.append((base, entry))
        found = self._nodes_of((*kind, "written"), [tensor for tensor, _ in changed], nodes)
        return [self.state(*pair, node) for pair, node in zip(changed, found, strict=True)]

    def _nodes_of(self, kind: tuple[Any, ...], tensors: list[torch.Tensor], nodes: tuple[int, int]) -> list[Node]:
        """The node of each tensor that a call returned or changed; of a leaf it is of no account."""
        recorded = [t for t in tensors if t.requires_grad and not t.is_leaf]
        if type(kind[0]) is str and kind[0].endswith(".apply"):  # its node is a Python object already
            return [self.graph_nodes.read(t) if t.requires_grad and not t.is_leaf else UNCHANGED for t in tensors]
        if len(recorded) == len(tensors):
            return self.graph_nodes.of_results(kind, recorded, nodes)
        found = iter(self.graph_nodes.of_results(kind, recorded, nodes))
        return [next(found) if t.requires_grad and not t.is_leaf else UNCHANGED for t in tensors]

    def state(self, tensor: torch.Tensor, entry: Entry | None = None, node: Node | None = None) -> tuple[Any, ...]:
        """(id, version, requires_grad, is_leaf, grad_fn, node, retains_grad, storage) of a tensor now. `node` is
        read from `grad_fn` where it is not given."""
        if entry is None:
            entry = self.identity.entry(tensor)
        number, storage = entry[1], entry[3]
        if not tensor.requires_grad:
            return number, version_of(tensor), False, True, None, NONE, False, storage
        leaf, retains_grad = tensor.is_leaf, tensor.retains_grad
        if leaf or retains_grad:
            self.leaves[number] = entry[0]
        if leaf:
            return number, version_of(tensor), True, True, None, NONE, False, storage
        name, sequence = self.graph_nodes.read(tensor) if node is None else node
        return number, version_of(tensor), True, False, name, sequence, retains_grad, storage

    def state_at_end(self, tensor: torch.Tensor) -> tuple[Any, ...]:
        """The state of a tensor when the run ends."""
        return self.state(tensor, node=read_node(tensor))

    def is_on_top(self) -> bool:
        """Returns whether the recorder is the innermost mode, so that it sees the next call of torch."""
        depth = torch._C._len_torch_function_stack()
        return depth > 0 and torch._C._get_function_stack_at(depth - 1) is self

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
        on_top = self.is_on_top()
        with self.quiet():
            if not on_top:
                yield
                return
            torch._C._pop_torch_function_stack()
            try:
                yield
            finally:
                torch._C._push_on_torch_function_stack(self)

    def trouble(self, what: str, error: Exception, frame: Any = None) -> None:
        """Say that an error of ours kept us from recording something. What a signal handler raises is none of ours."""
        reraise_user_error(error)
        with suppress(Exception):
            self.gap(f"{what} could not be recorded ({type(error).__name__}: {safe_text(error)})", frame)

    def gap(self, reason: str, frame: Any = None) -> None:
        """Say that something can't be seen."""
        self.rows.append((GAP, reason, self.sites.of(frame or _getframe(1))))
