"""Records the collectives that one rank of a distributed run starts, in their order."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from types import FrameType

import torch
import torch.distributed as dist

from tensorlens.journal.rows import optional
from tensorlens.records.distributed import Collective, CollectiveReturned
from tensorlens.records.limits import MAX_COLLECTIVES
from tensorlens.tracer.isolation.guard import ErrorGuard, Function
from tensorlens.tracer.isolation.patch import Patch, observe
from tensorlens.tracer.recording.recorder import Recorder

_OPS = (
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_gather_single",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "broadcast_object_list",
    "gather",
    "gather_object",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
)


class _Started:
    """Numbers the collectives of one recording. A collective may call others: these belong to it."""

    def __init__(self) -> None:
        self.count = 0
        self._inside = threading.local()

    @property
    def depth(self) -> int:
        return getattr(self._inside, "depth", 0)

    @depth.setter
    def depth(self, value: int) -> None:
        self._inside.depth = value

    def wrap(self, recorder: Recorder, original: Function) -> Function:
        name = original.__name__

        def collective(frame: FrameType, /, *args: object, **kwargs: object) -> object:
            number = None
            with ErrorGuard(recorder, f"`{name}`"):
                number = self._note(recorder, name, frame, args, kwargs)
                recorder.write_out()  # the process may be killed while it waits
            self.depth += 1
            try:
                return original(*args, **kwargs)
            finally:
                self.depth -= 1
                if number is not None:
                    with ErrorGuard(recorder, f"`{name}`"):
                        recorder.rows.write_fact(CollectiveReturned, number)

        return collective

    def _note(
        self, recorder: Recorder, name: str, frame: FrameType, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> int | None:
        """Writes the start of a collective; returns its number, or None if it is not written."""
        if self.depth or self.count >= MAX_COLLECTIVES:
            return None
        group = kwargs.get("group")
        for value in args:
            group = value if isinstance(value, dist.ProcessGroup) else group
        if not (dist.is_initialized() and (group is None or isinstance(group, dist.ProcessGroup))):
            return None  # it will fail, or this rank is not in the group
        ranks = tuple(dist.get_process_group_ranks(dist.group.WORLD if group is None else group))
        tensor = None if name.endswith(("object", "object_list")) else _first_tensor([*args, *kwargs.values()])
        shape, dtype = ((), "") if tensor is None else (tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."))
        site = optional(recorder.sites.site_of(frame))
        recorder.rows.write_fact(Collective, self.count, name, site, ranks, shape, dtype)
        self.count += 1
        return self.count - 1


def _first_tensor(values: Iterable[object]) -> torch.Tensor | None:
    for value in values:
        if isinstance(value, torch.Tensor):
            return value
        if isinstance(value, list | tuple) and value and isinstance(value[0], torch.Tensor):
            return value[0]
    return None


def patches() -> tuple[Patch[Recorder], ...]:
    """Returns the patches for a rank of a distributed run; none for a process of its own."""
    if not hasattr(dist, "all_reduce"):
        return ()
    owners = (dist, dist.distributed_c10d)
    wrap = observe(_Started().wrap)
    return tuple(Patch(owner, name, wrap) for name in _OPS for owner in owners if hasattr(owner, name))
