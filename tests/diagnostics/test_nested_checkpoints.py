"""Checkpoints inside checkpoints: each call is looked at once, however many are around it."""

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import tensorlens
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.checkpoint import checkpoint_no_input_requires_grad as finding


def depth_first(value: torch.Tensor, depth: int) -> torch.Tensor:
    value = torch.tanh(value)
    with torch.enable_grad():  # a checkpoint turns gradients off, and those inside it would be harmless
        return checkpoint(depth_first, value, depth - 1, use_reentrant=True) if depth else value


def looked_at(depth: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Counts the calls that the finding looks at in a nest of checkpoints."""
    value = torch.ones(2)
    with tensorlens.trace() as session:
        depth_first(value, depth)
    seen: list[int] = []
    would_record = finding._would_record

    def counted(facts: TraceIndex, call: object) -> bool:
        seen.append(1)
        return would_record(facts, call)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(finding, "_would_record", counted)
        list(finding.find(TraceIndex(session.report().trace)))
    return len(seen)


@pytest.mark.filterwarnings("ignore:None of the inputs")
def test_each_call_is_looked_at_once_however_deep_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = looked_at(6, monkeypatch), looked_at(24, monkeypatch)
    assert few > 0
    assert many <= 5 * few
