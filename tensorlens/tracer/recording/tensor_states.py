"""Describes tensors in rows: their ids, versions, autograd state and nodes. The base of every part of the recorder."""

from __future__ import annotations

import sys
import weakref
from _thread import get_ident
from collections.abc import Callable, Iterable
from types import FrameType

import torch

from tensorlens.journal.row_buffer import RowBuffer
from tensorlens.journal.rows import NONE, GapRow, State, optional
from tensorlens.tracer.frames.call_sites import Sites
from tensorlens.tracer.isolation.guard import reraise_user_error, safe_text
from tensorlens.tracer.recording.graph_nodes import GraphNodes, Node, is_leaf, read_node
from tensorlens.tracer.recording.running_passes import RunningPasses
from tensorlens.tracer.recording.tensor_ids import PLAIN, Entry, TensorIds

_grad_enabled = torch.is_grad_enabled
_inference = torch.is_inference_mode_enabled
_getframe = sys._getframe
UNWRITTEN = "the state of a new input is not written yet"


def current_mode() -> int:
    """Returns the mode that calls run in, as rows name it: 0 records gradients, 1 is `no_grad`, 2 `inference_mode`."""
    return 2 if _inference() else (0 if _grad_enabled() else 1)


def version_of(tensor: torch.Tensor) -> int:
    """Returns the version of a tensor; `NONE` for an inference tensor, which has none."""
    try:
        if type(tensor) in PLAIN:
            return tensor._version
        with torch._C.DisableTorchFunctionSubclass():  # a subclass may see the read
            return tensor._version
    except RuntimeError:
        return NONE


class TensorStates:
    """Knows the tensors of a run. `rows` receives everything that is recorded."""

    def __init__(self, own_files: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.rows = RowBuffer()
        self.sites = Sites(self.rows, own_files)
        self.tensor_ids = TensorIds(self.rows)
        self.graph_nodes = GraphNodes()
        self.passes = RunningPasses()
        self.is_paused = False  # in all threads; the fast path in Python reads it, since a property takes longer
        self._note_pause: Callable[[bool], object] = bool  # the compiled fast path knows of a pause, too
        self.quiet_threads: set[int] = set()  # threads in which nothing is recorded now
        self.leaves: dict[
            int, weakref.ref[torch.Tensor]
        ] = {}  # by tensor id: those that a backward pass may give a gradient
        self.unwritten: list[State] = []  # states of new inputs, for the next CALL row
        self.slow_path_reasons: set[str] = set()  # why every call takes the slow path now
        self.sites.local_tensors.number_of = self.tensor_ids.find

    @property
    def paused(self) -> bool:
        """Returns whether nothing of this thread is recorded now."""
        return self.is_paused or (bool(self.quiet_threads) and get_ident() in self.quiet_threads)

    @paused.setter
    def paused(self, paused: bool) -> None:
        self.is_paused = paused
        self._note_pause(self.paused)  # a `quiet` block of this thread goes on

    def accesses(self, tensors: list[torch.Tensor]) -> list[int]:
        """Returns (tensor id, version) of each tensor, flat. New tensors get their id."""
        known, in_c = self.tensor_ids.known, self.tensor_ids.in_c
        flat = None if in_c is None else in_c.accesses(tensors)
        if flat is not None:
            return flat
        flat = []
        for tensor in tensors:
            entry = known.get(id(tensor))
            if entry is None or entry[0]() is not tensor:
                entry = self.add_input(tensor)
            flat += (entry[1], version_of(tensor))
        return flat

    def meet(self, tensors: Iterable[torch.Tensor]) -> None:
        """Gives ids to tensors that were made before the recording; their states go into the next CALL row."""
        find, in_c = self.tensor_ids.find, self.tensor_ids.in_c
        for tensor in tensors if in_c is None else in_c.new(tensors):
            if find(tensor) is None:
                self.add_input(tensor)

    def add_input(self, tensor: torch.Tensor) -> Entry:
        """Adds a tensor that is first seen as an input; its state goes into the next CALL row."""
        with torch._C.DisableTorchFunctionSubclass():
            entry = self.tensor_ids.add(tensor)
            self.unwritten.append(self.state(tensor, entry))
        self.slow_path_reasons.add(UNWRITTEN)
        return entry

    def state(self, tensor: torch.Tensor, entry: Entry | None = None, node: Node | None = None) -> State:
        """Returns (id, version, requires_grad, is_leaf, grad_fn, node, retains_grad, storage) of a tensor now.

        Without a `node`, reads `grad_fn`.
        """
        if entry is None:
            entry = self.tensor_ids.entry(tensor)
        number, storage = entry[1], None if entry[3] == NONE else entry[3]
        version = None if (current := version_of(tensor)) == NONE else current  # `optional`, without a call
        if not tensor.requires_grad:
            return number, version, False, True, None, None, False, storage
        leaf, retains_grad = is_leaf(tensor), tensor.retains_grad
        if leaf or retains_grad:
            self.leaves[number] = entry[0]
        if leaf:
            return number, version, True, True, None, None, False, storage
        name, sequence = self.graph_nodes.read(tensor) if node is None else node
        return number, version, True, False, name, optional(sequence), retains_grad, storage

    def state_at_end(self, tensor: torch.Tensor) -> State:
        """Returns the state of a tensor at the end of a run."""
        return self.state(tensor, node=read_node(tensor))

    def internal_error(self, what: str, error: Exception, frame: FrameType | None = None) -> None:
        """Reports that an internal error kept something from being recorded. Re-raises what a signal handler raised."""
        reraise_user_error(error)
        try:
            self.gap(f"{what} could not be recorded ({type(error).__name__}: {safe_text(error)})", frame)
        except Exception as another:
            reraise_user_error(another)

    def gap(self, reason: str, frame: FrameType | None = None) -> None:
        """Reports that something can't be seen."""
        self.rows.write(GapRow, reason, optional(self.sites.site_of(frame or _getframe(1))))
