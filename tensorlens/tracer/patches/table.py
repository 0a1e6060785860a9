"""Joins the patches of all files into one table."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from tensorlens.tracer.isolation.patch import Patch, patched
from tensorlens.tracer.isolation.stack_room import ROOM
from tensorlens.tracer.patches import (
    backward,
    checkpoint,
    checkpoint_recompute,
    child_processes,
    compile,  # noqa: A004 - the subject is `torch.compile`
    contexts,
    custom_functions,
    device_waits,
    functorch,
    gradcheck_and_functional,
    hooks,
    module_attributes,
    module_hooks,
    optimizer_parameters,
    optimizer_state,
    optimizer_step,
    python_functions,
    storage_writes,
    tensor_creation,
    threads_and_exit,
)
from tensorlens.tracer.recording import ops
from tensorlens.tracer.recording.recorder import Recorder

PATCHES: tuple[Patch[Recorder], ...] = (
    *tensor_creation.PATCHES,
    *custom_functions.PATCHES,
    *backward.PATCHES,
    *threads_and_exit.PATCHES,
    *module_attributes.PATCHES,
    *contexts.PATCHES,
    *checkpoint.PATCHES,
    *checkpoint_recompute.PATCHES,
    *hooks.PATCHES,
    *module_hooks.PATCHES,
    *gradcheck_and_functional.PATCHES,
    *optimizer_parameters.PATCHES,
    *optimizer_state.PATCHES,
    *functorch.PATCHES,
    *storage_writes.PATCHES,
    *optimizer_step.PATCHES,
    *compile.PATCHES,
    *child_processes.PATCHES,
    *device_waits.PATCHES,
    *python_functions.PATCHES,
)

_recorders: list[Recorder] = []  # those whose patches are installed


@contextmanager
def installed(recorder: Recorder) -> Iterator[None]:
    """Installs every patch while a run is recorded, and leaves everything as it was."""
    patches = PATCHES
    sampled = recorder.sampling
    if recorder.is_rank or ("RANK" in os.environ and "WORLD_SIZE" in os.environ):
        patches = with_ranks(recorder, patches)
    if sampled is not None:
        from tensorlens.tracer.patches import sampling, uncounted_uses

        patches = (*uncounted_uses.PATCHES, *patches, *sampling.PATCHES)
        sampled.will_install(patches)
    if recorder.statistics is not None:
        from tensorlens.tracer.patches import (
            loaders,
            module_copies,
            module_modes,
            random_state,
            saved_files,
            schedulers,
            state_loading,
        )

        modules = saved_files, schedulers, state_loading, module_modes, random_state, module_copies, loaders
        for module in modules:
            patches += module.PATCHES
    _recorders.append(recorder)
    if len(_recorders) > 1:
        for each in _recorders:
            if each.sampling is not None:
                each.sampling.keep_patches()
    try:
        with ROOM.of_recording(), patched(patches, recorder):
            if sampled is not None:
                sampled.has_installed()
            try:
                ops.read_names()
                yield
            finally:
                recorder.callbacks.end()
                if recorder.replicas is not None:
                    recorder.replicas.end()
    finally:
        _recorders.remove(recorder)


def with_ranks(recorder: Recorder, others: tuple[Patch[Recorder], ...]) -> tuple[Patch[Recorder], ...]:
    """Adds the patches for a rank of a distributed run."""
    recorder.is_rank = True
    if not torch.distributed.is_available():
        return others
    from tensorlens.tracer.patches import collectives

    others += collectives.patches()
    if recorder.sampling is not None:
        return others
    from tensorlens.tracer.patches import data_parallel, sharded_modules
    from tensorlens.tracer.patches.wrapped_replicas import Replicas

    recorder.replicas = replicas = Replicas(recorder)
    first, last = data_parallel.patches(replicas)
    return (*first, *others, *last, *sharded_modules.patches(recorder, replicas.undo))
