"""Records a torch call on the slow path: measures what the call did and writes a whole CALL row.

Rows are plain tuples of ints and strings (`tensorlens.journal.rows`); nothing in them keeps a tensor, a gradient or a
node alive.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import Any

import torch

from tensorlens.journal.rows import NONE, CallRow, State, optional
from tensorlens.tracer.isolation.guard import Function
from tensorlens.tracer.isolation.module_tree import collect_tensors
from tensorlens.tracer.recording import ops
from tensorlens.tracer.recording.exceptions import ExceptionRows
from tensorlens.tracer.recording.fast_path import ATOMS
from tensorlens.tracer.recording.graph_nodes import UNCHANGED, Node, is_leaf, kinds_of
from tensorlens.tracer.recording.ops import Args, Kwargs
from tensorlens.tracer.recording.services import Called, SavedTensors
from tensorlens.tracer.recording.tensor_ids import PLAIN, Entry
from tensorlens.tracer.recording.tensor_states import UNWRITTEN, current_mode, version_of

_next_sequence = torch._C._autograd._get_sequence_nr
Kind = tuple[Any, ...]  # a function or its name, the site of the call, the kinds of its arguments


class SlowPath(ExceptionRows):
    """Records calls one by one, with everything that may have changed."""

    saved_tensors: SavedTensors  # set by the recorder's constructor

    def __init__(self, own_files: tuple[str, ...] = ()) -> None:
        super().__init__(own_files)
        self.watched: dict[int, Any] = {}  # number -> watched storage: it can be written past a version counter
        self.guarded: list[Any] = []  # (number, watched storage) of those that are compared after every call
        self.uncounted: set[str] = set()  # why PyTorch's use counts may not show all that is saved
        self.saved_statistics: set[int] = set()  # the ids of running statistics that nodes may have saved
        self.looks_at_small: Callable[[Function, torch.Tensor], bool] = lambda function, result: False
        self.look_at_small: Callable[[Called, object], None] | None = None  # in a run with `--training`
        self.risky = False  # an operation whose derivative may be infinite or NaN was recorded since the last backward

    def call(self, func: Function, args: Args, kwargs: Kwargs, frame: FrameType | None, name: str = "") -> Any:
        """Calls `func` and writes a CALL row. If it raises, writes a FAILURE row and lets the exception pass."""
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
        except Exception as error:  # ours, never the user's
            self.internal_error("a call", error, frame)
        if inputs is None:
            return func(*args, **kwargs)
        may_be_subclass = len(tensors) > plain
        before = _next_sequence()
        try:
            result = func(*args, **kwargs)
        except BaseException as error:
            try:
                self.fail(error, name or func, inputs, frame)
            except RecursionError:  # ours: the stack has no room left to record it
                pass
            raise
        self.finish(
            (func, name, frame, "out" in kwargs, may_be_subclass, (args, kwargs)), result, tensors, inputs, before
        )
        return result

    def finish(
        self, called: Called, result: object, tensors: list[torch.Tensor], inputs: list[int], before: int
    ) -> None:
        """Writes the CALL row of a call that returned, after a look at the memory that is watched."""
        if self.watched:
            try:
                self.saved_tensors.after_call(called, tensors, inputs, before)
            except Exception as error:  # ours, never the user's
                self.internal_error("watched memory", error, called[2])
        if self.look_at_small is not None:
            self.look_at_small(called, result)
        after = _next_sequence()
        try:
            if type(result) in PLAIN and not called[4]:
                self._record(called, result, tensors, inputs, (before, after))
            else:  # else a subclass's `__torch_function__` would run for every attribute that is read
                with torch._C.DisableTorchFunctionSubclass():
                    self._record(called, result, tensors, inputs, (before, after))
        except Exception as error:  # ours, never the user's
            self.internal_error("a call", error, called[2])

    def _record(
        self,
        called: Called,
        result: object,
        tensors: list[torch.Tensor],
        inputs: list[int],
        nodes: tuple[int, int],
    ) -> None:
        func, name, frame, out, _, arguments = called
        writes: tuple[int, ...] = ()
        if func in ops.MOVING and tensors:
            self.tensor_ids.note_moved(tensors[0])
        for tensor, version in zip(tensors, inputs[1::2], strict=True):
            if version != NONE and tensor._version != version:
                if not self.sites.shared.has_second or ops.may_write(func, *(arguments or ((), {}))):
                    writes = self._writes(tensors, inputs, out)
                break  # else another thread has written it
        site = self.sites.site_or_outside(frame)
        kind = (name or func, site, kinds_of(arguments) if nodes[0] < nodes[1] else ())
        outputs, states = self._outputs(func, kind, result, tensors, nodes)
        if writes:
            states += self._written_states(kind, tensors, writes, outputs, nodes)
        elif func in ops.STATEFUL and tensors:
            states.append(self.state(tensors[0], node=UNCHANGED))
        if self.unwritten:
            taken, self.unwritten = self.unwritten, []  # in one step: other threads add to it
            states = taken + states
            self.slow_path_reasons.discard(UNWRITTEN)
        op = name or ops.name_of(func)
        first, end = nodes
        self.rows.write(CallRow, op, site, tuple(inputs), outputs, writes, tuple(states), first, end, current_mode())

    def note_alias(self, op: str, source: torch.Tensor, result: torch.Tensor, frame: FrameType | None) -> None:
        """Writes the CALL row of a read of `.data` that has no template: see `PropertyReads.finish_alias`."""
        _, number, _, storage = self.tensor_ids.entry(source)
        entry = self.tensor_ids.add_alias(result, storage)
        self.tensor_ids.write_row(result, entry)
        access = entry[1], version_of(result)
        node = _next_sequence()
        state = (access[0], optional(access[1]), False, True, None, None, False, optional(storage))
        inputs = (number, version_of(source))
        site = self.sites.site_or_outside(frame)
        self.rows.write(CallRow, op, site, inputs, access, (), (state,), node, node, current_mode())

    def _writes(self, tensors: list[torch.Tensor], inputs: list[int], out: bool) -> tuple[int, ...]:
        """Returns (tensor id, version before, version after), flat, of each argument that was written.

        Views of one base share a version counter, so one write may move the versions of several arguments. The last of
        these counts as written in a call with `out=`, else the first.
        """
        moved: dict[int, tuple[int, int, int]] = {}
        for position, tensor in enumerate(tensors):
            number, before = inputs[2 * position], inputs[2 * position + 1]
            if before == NONE:
                continue
            after = version_of(tensor)
            if after > before:
                counter = self.tensor_ids.entry(tensor)[2]
                if out or counter not in moved:
                    moved[counter] = (number, before, after)
        return tuple(value for write in moved.values() for value in write)

    def _outputs(
        self, func: Function, kind: Kind, result: Any, tensors: list[torch.Tensor], nodes: tuple[int, int]
    ) -> tuple[tuple[int, ...], list[State]]:
        results: list[torch.Tensor] = [result] if type(result) in PLAIN else []
        if not results:
            collect_tensors(result, results)
        flat: list[int] = []
        states: list[State] = []
        for tensor, node in zip(results, self._nodes_of((*kind, "output"), results, nodes), strict=True):
            entry = self.tensor_ids.known.get(id(tensor))
            is_new = entry is None or entry[0]() is not tensor
            if entry is None or is_new:
                shares = func in ops.SHARES_COUNTER and tensors
                entry = self.tensor_ids.add(tensor, self.tensor_ids.entry(tensors[0]) if shares else None)
            state = self.state(tensor, entry, None if is_new and node is UNCHANGED else node)
            flat += (entry[1], NONE if state[1] is None else state[1])
            states.append(state)
        return tuple(flat), states

    def _written_states(
        self,
        kind: Kind,
        tensors: list[torch.Tensor],
        writes: tuple[int, ...],
        outputs: tuple[int, ...],
        nodes: tuple[int, int],
    ) -> list[State]:
        """Returns the states of written tensors and of the bases of written views, unless they are outputs."""
        done, written = set(outputs[::2]), set(writes[::3])
        changed: list[tuple[torch.Tensor, Entry]] = []
        for tensor in tensors:
            entry = self.tensor_ids.entry(tensor)
            if entry[1] not in done and entry[1] in written:
                done.add(entry[1])
                changed.append((tensor, entry))
        for tensor in tensors:
            base = tensor._base
            if base is not None and (entry := self.tensor_ids.entry(base))[1] not in done and tensor is not base:
                done.add(entry[1])
                changed.append((base, entry))
        new_nodes = self._nodes_of((*kind, "written"), [tensor for tensor, _ in changed], nodes)
        return [self.state(*pair, node) for pair, node in zip(changed, new_nodes, strict=True)]

    def _nodes_of(self, kind: Kind, tensors: list[torch.Tensor], nodes: tuple[int, int]) -> list[Node]:
        """Returns the node of each tensor that a call returned or changed. That of a leaf does not matter."""
        recorded = [t for t in tensors if t.requires_grad and not is_leaf(t)]
        if type(kind[0]) is str and kind[0].endswith(
            ".apply"
        ):  # its node is a Python object already: reading it costs nothing
            return [self.graph_nodes.read(t) if t.requires_grad and not is_leaf(t) else UNCHANGED for t in tensors]
        if len(recorded) == len(tensors):
            return self.graph_nodes.of_results(kind, recorded, nodes)
        new_nodes = iter(self.graph_nodes.of_results(kind, recorded, nodes))
        return [next(new_nodes) if t.requires_grad and not is_leaf(t) else UNCHANGED for t in tensors]
