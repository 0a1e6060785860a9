"""Remembers which memory was changed past a version counter, and writes a row for each such change."""

from __future__ import annotations

from dataclasses import dataclass
from types import FrameType

import torch

from tensorlens.journal.rows import NONE, optional
from tensorlens.records import observations
from tensorlens.tracer.isolation.torch_features import StorageReference, refer_to
from tensorlens.tracer.isolation.torch_originals import data_ptr, untyped_storage
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.saved_tensors.watched_storage import extent_of

MAX_REMEMBERED = 8  # changes of one storage, each with the bytes from before
_next_sequence = torch._C._autograd._get_sequence_nr


@dataclass(slots=True)
class Overwrite:
    """A change of memory that moved no version counter."""

    sequence: int  # nodes with a lower sequence number had saved their tensors before it
    storage: StorageReference | None
    start: int  # address
    size: int
    moved_tensor: int = NONE  # the tensor that `.data = ...` put on other memory; `storage` is then what it left
    contents: bytes | None = None  # the bytes before the change
    contents_start: int = 0  # the address of the first of them
    number: int = 0  # its place among the rows of changes


class Overwrites:
    """Keeps the changes that a backward pass may still meet, the oldest first."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.changes: list[Overwrite] = []
        self._count = 0

    def __bool__(self) -> bool:
        return bool(self.changes)

    def after(self, sequence: int) -> list[Overwrite]:
        """Returns the changes that came after the node with this sequence number was recorded."""
        return [change for change in self.changes if change.sequence > sequence]

    def latest_sequence(self) -> int:
        """Returns the highest sequence number of a change. Nodes from there on saved tensors after all changes."""
        return max((change.sequence for change in self.changes), default=NONE)

    def add(self, change: Overwrite, op: str, opened_at: int, sites: tuple[int, ...], tensor: int) -> None:
        """Remembers a change and writes its row.

        Args:
            change: what changed.
            op: the operation through which the memory could be written.
            opened_at: the site of that operation.
            sites: where the write may have happened.
            tensor: the tensor whose memory it is.
        """
        change.number = self._count
        self._count += 1
        self.changes.append(change)
        self._forget(change)
        known = tuple(site for site in sites if site != NONE)
        self._recorder.rows.write_fact(observations.Overwrite, op, optional(opened_at), known, optional(tensor))

    def add_moved_tensor(self, before: torch.Tensor, tensor: torch.Tensor, op: str, frame: FrameType | None) -> None:
        """Notes that `tensor` has other memory than `before`, with other values, while nodes have saved the tensor."""
        number = self._recorder.tensor_ids.id_of(tensor)
        site = self._recorder.sites.site_of(frame)
        change = Overwrite(_next_sequence(), _storage_of(before), 0, 0, moved_tensor=number)
        self.add(change, op, site, (site,), number)

    def add_kernel_write(self, tensor: torch.Tensor, op: str, frame: FrameType | None) -> None:
        """Notes that a kernel wrote `tensor` and moved no version. The bytes from before are not known."""
        storage = untyped_storage(tensor)
        site, number = self._recorder.sites.site_of(frame), self._recorder.tensor_ids.id_of(tensor)
        change = Overwrite(_next_sequence(), refer_to(storage), data_ptr(tensor), extent_of(tensor))
        self.add(change, op, site, (site,), number)

    def forget(self) -> None:
        """Forgets all changes. The next one has the next number."""
        self.changes.clear()

    def _forget(self, latest: Overwrite) -> None:
        """Forgets changes of freed memory, and those of one storage beyond the last few."""
        self.changes = [
            c for c in self.changes if c.moved_tensor != NONE or c.storage is None or c.storage() is not None
        ]
        same = [
            c
            for c in self.changes
            if c.moved_tensor == latest.moved_tensor and (c.moved_tensor != NONE or c.storage == latest.storage)
        ]
        for change in same[:-MAX_REMEMBERED]:
            self.changes.remove(change)


def _storage_of(tensor: torch.Tensor) -> StorageReference | None:
    try:
        return refer_to(untyped_storage(tensor))
    except (RuntimeError, NotImplementedError):
        return None
