"""Decides whether each rank of a run holds only a part of each parameter."""

from __future__ import annotations

from tensorlens.records.model import Trace


def is_sharded(trace: Trace) -> bool:
    """Returns whether ranks hold parts of parameters. Forward and backward use other tensors, gathered from all parts,
    and a part may be empty on one rank."""
    is_flat = any(site.through.startswith("FullyShardedDataParallel.") for site in trace.sites)
    return is_flat or any(tensor.type == "DTensor" for tensor in trace.tensors)
