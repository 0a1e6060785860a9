"""Holds what the finders that compare the ranks of a distributed run are given, and words for their findings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from tensorlens.analysis.ranks.averaging import Cause, Unaveraged, unaveraged
from tensorlens.analysis.ranks.rank_texts import ranks_text
from tensorlens.analysis.ranks.replicas import Replica, ReplicaGroup, StateDifference, replica_groups
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.optimizers import listed
from tensorlens.records.report import Diagnostic, Label


@dataclass(frozen=True)
class RankedDiagnostic:
    """A finding about several ranks. Its labels are lines of the first one's trace."""

    diagnostic: Diagnostic
    ranks: tuple[int, ...]


@dataclass(frozen=True)
class RankedFacts:
    """The facts of each rank of one run."""

    facts: Mapping[int, TraceIndex]

    @cached_property
    def groups(self) -> tuple[ReplicaGroup, ...]:
        return tuple(replica_groups({rank: each.trace for rank, each in self.facts.items()}))

    @cached_property
    def _unaveraged(self) -> tuple[Unaveraged, ...]:
        return tuple(found for group in self.groups if (found := unaveraged(group)) is not None)

    def unaveraged(self, cause: Cause) -> Iterator[tuple[TraceIndex, Unaveraged]]:
        """Yields the gradients that ranks have not averaged for a cause, with the facts of the rank that shows it."""
        for found in self._unaveraged:
            if found.cause == cause:
                yield self.facts[found.replica.rank], found


def gradient_title(found: Unaveraged) -> str:
    """Returns "`weight` has another gradient on rank 1 than on rank 0"."""
    names = listed([f"`{name}`" for name in found.names])
    has, gradient = ("have", "other gradients") if len(found.names) > 1 else ("has", "another gradient")
    return f"{names} {has} {gradient} on rank {found.difference.other.rank} than on rank {found.difference.one.rank}"


def both_ranks(found: StateDifference) -> tuple[int, ...]:
    return found.one.rank, found.other.rank


def step_label(facts: TraceIndex, found: Unaveraged) -> Label | None:
    """Labels the optimizer step that uses the gradients."""
    state = found.difference.state(found.replica)
    return facts.label("needed_here", state.site, f"{step_text(found.difference)} uses these gradients")


def step_text(found: StateDifference) -> str:
    """Returns "step 3", or "the end of the run"."""
    return f"step {found.step}" if found.step > 0 else "the end of the run"


def wrapped_label(facts: TraceIndex, replica: Replica) -> Label | None:
    """Labels the line that wraps the module."""
    return facts.label(
        "wrapped_here", replica.wrapped.site, f"wrapped here, for {ranks_text(list(replica.wrapped.group))}"
    )
