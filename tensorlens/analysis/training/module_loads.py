"""Finds the writes of `Module.load_state_dict`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Call

LOADS = "Module.load_state_dict"


def module_loads(facts: TraceIndex) -> Iterator[Call]:
    """Yields the calls that load a tensor. Batch norm adds its own `num_batches_tracked` to a dict that has none, and
    so copies it onto itself: that is no load."""
    sites = facts.trace.sites
    for call in facts.calls:
        if call.op == "Tensor.copy_" and sites[call.site].through == LOADS and call.writes:
            if call.inputs[0].tensor != call.inputs[-1].tensor:
                yield call
