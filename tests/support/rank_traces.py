"""Traces of the ranks of one made-up run: a small training, with one rank that makes other calls."""

from __future__ import annotations

from dataclasses import replace

import torch

from support.recording import traced
from tensorlens.analysis.ranks.merge import merged
from tensorlens.diagnostics import report_on
from tensorlens.records.distributed import EndedAt
from tensorlens.records.merged_report import MergedReport
from tensorlens.records.model import Rank, Trace


def trained(is_odd: bool) -> None:
    layer = torch.nn.Linear(2, 1)
    for step in range(3):
        loss = layer(torch.ones(3, 2)).sum()
        if is_odd and step == 1:
            loss = loss.exp()
        loss.backward()


def overwritten() -> None:
    y = torch.ones(2, requires_grad=True).exp()
    y.add_(1)
    y.sum().backward()


def as_rank(trace: Trace, number: int, world: int, run: str = "", ended: float = 1.0) -> Trace:
    """Returns a trace as that of one rank."""
    script = replace(trace.script, rank=Rank(number, world, "host", ended, run))
    inspection = replace(trace.inspection, ended_at=(EndedAt(len(trace.events), ended + number / 8),))
    return replace(trace, script=script, inspection=inspection)


def ranks(world: int, odd: int | None = None) -> list[Trace]:
    """Returns the traces of a run in which the rank `odd` makes one call more than the others."""
    usual, other = traced(lambda: trained(False)), traced(lambda: trained(True))
    return [as_rank(other if number == odd else usual, number, world) for number in range(world)]


def failing(world: int) -> list[Trace]:
    """Returns the traces of a run whose last rank fails; the others run to their end."""
    traces = [as_rank(traced(lambda: trained(False)), number, world) for number in range(world - 1)]
    return [*traces, as_rank(traced(overwritten), world - 1, world)]


def report_of(traces: list[Trace]) -> MergedReport:
    return merged([report_on(trace) for trace in traces])
