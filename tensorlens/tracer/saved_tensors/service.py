"""Notices saved tensors that change before backward uses them. `SavedTensors` is the part of this room that belongs to
a recorder: the recorder and the patches call its methods.

It reads the graph and memory and never changes them. It patches nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import FrameType

import torch

from tensorlens.records.observations import Nested, StaleSavedTensor
from tensorlens.tracer.isolation.module_tree import collect_tensors
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.recording.services import Called
from tensorlens.tracer.saved_tensors.context_attributes import ContextAttributes
from tensorlens.tracer.saved_tensors.memory_watch import MemoryWatcher
from tensorlens.tracer.saved_tensors.overwrites import Overwrites
from tensorlens.tracer.saved_tensors.packed import Pack, Unpack, with_version_check
from tensorlens.tracer.saved_tensors.stale import stale_saved_tensors
from tensorlens.tracer.saved_tensors.watched_storage import Memory, is_surely_unsaved


class SavedTensors:
    """Watches everything that may change the saved tensors of one run."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._overwrites = Overwrites(recorder)
        self._attributes = ContextAttributes(recorder.uncounted)
        self._watch_memory()
        self._statistics = recorder.saved_statistics

    def _watch_memory(self) -> None:
        self._memory = memory = MemoryWatcher(self._recorder, self._overwrites, self._counts_are_complete)
        self.is_watched, self.watch, self.watch_alias = memory.is_watched, memory.watch, memory.watch_alias
        self.saved_storages = memory.saved

    def _counts_are_complete(self) -> bool:
        """Returns whether PyTorch's use counts show everything that is saved."""
        return not self._recorder.uncounted

    # --- asked by the recorder, only if some storage is watched -----------------------------------------------------

    def after_call(self, called: Called, tensors: Sequence[torch.Tensor], inputs: Sequence[int], before: int) -> None:
        """Compares the watched memory after a call on the slow path, before its row is written."""
        runs_user_code = called[1].endswith(".apply")
        self._memory.after_call(called[2], tensors, inputs, None if runs_user_code else before)

    # --- asked by the patches ---------------------------------------------------------------------------------------

    def compare_all(self, frame: FrameType) -> None:
        """Compares all watched memory with its copies."""
        self._memory.compare_all(frame)

    def memory_outside(self) -> list[tuple[int, Memory]]:
        """See `MemoryWatcher.memory_outside`."""
        return self._memory.memory_outside()

    def note_storage_write(self, frame: FrameType) -> None:
        """Notes that the line of `frame` has just written to a storage."""
        self._memory.note_storage_write(frame)

    def note_moved_tensor(self, before: torch.Tensor, tensor: torch.Tensor, op: str, frame: FrameType | None) -> None:
        """Notes that `.data = ...` put `tensor` on other memory than `before`, with other values."""
        self._overwrites.add_moved_tensor(before, tensor, op, frame)

    def note_kernel_write(self, tensor: torch.Tensor, op: str, frame: FrameType | None) -> None:
        """Notes that a kernel wrote `tensor` and moved no version."""
        self._overwrites.add_kernel_write(tensor, op, frame)

    def note_unversioned_write(self, tensor: torch.Tensor, op: str, frame: FrameType | None) -> None:
        """Notes that a tensor has other values and the same version, unless no node can have saved it."""
        if not self._counts_are_complete() or not is_surely_unsaved(tensor, 0):
            self.note_kernel_write(tensor, op, frame)

    def note_statistics_used(self, result: torch.Tensor, *running: torch.Tensor) -> None:
        """Notes that a layer normalised with its running statistics: if `result` has a history, a node saved them."""
        if result.requires_grad:
            self._statistics.update(map(self._recorder.tensor_ids.id_of, running))

    def note_statistics_updated(self, op: str, frame: FrameType | None, *running: torch.Tensor) -> None:
        """Notes that a layer updated its running statistics."""
        for tensor in running if self._statistics else ():
            number = self._recorder.tensor_ids.id_of(tensor)
            if number in self._statistics:
                self._statistics.discard(number)
                self.note_kernel_write(tensor, op, frame)

    def note_function_applied(self, result: object, args: tuple[object, ...]) -> None:
        """Notes what a custom Function kept on its `ctx`, and the tensors that it received inside containers."""
        self._attributes.note(result)
        tensors: list[torch.Tensor] = []
        collect_tensors([value for value in args if isinstance(value, list | tuple | dict)], tensors)
        if tensors:
            numbers = tuple(self._recorder.tensor_ids.id_of(tensor) for tensor in tensors)
            self._recorder.rows.write_fact(Nested, numbers)

    def with_version_check(self, pack: Pack, unpack: Unpack) -> tuple[Pack, Unpack]:
        """Returns the program's saved-tensor hooks with a version check around them."""
        return with_version_check(self._recorder, pack, unpack, self.note_uncounted)

    def note_uncounted(self) -> None:
        """Notes that a pack hook of the program runs, or something else that keeps tensors: no use count shows them."""
        self._recorder.uncounted.add("packed tensors")

    def forget(self) -> None:
        """Forgets what was watched: writes to it may have been made without a record."""
        self._recorder.watched.clear()
        self._recorder.guarded.clear()
        self._overwrites.forget()
        if self._attributes:  # their nodes may live on
            self.note_uncounted()
        self._attributes = ContextAttributes(self._recorder.uncounted)
        self._watch_memory()
        self._statistics.clear()

    def may_be_stale(self) -> bool:
        """Returns whether `note_stale` can find anything: memory was watched or written past its version counter, or a
        custom Function keeps tensors on its `ctx`."""
        return bool(self._recorder.watched or self._overwrites.changes or self._attributes.by_sequence)

    def note_stale(self, roots: list[torch.Tensor], frame: FrameType) -> None:
        """Writes a row for each saved tensor below `roots` that changed after it was saved."""
        try:
            self._memory.compare_all(frame)
            for row in stale_saved_tensors(self._recorder, self._overwrites, self._attributes, roots):
                self._recorder.rows.write_fact(StaleSavedTensor, *row)
        except Exception as error:  # ours: the user's backward goes on
            self._recorder.internal_error("the graph before backward", error, frame)
