"""Holds what the finders that compare the ranks of a distributed run are given, and words for their findings."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tensorlens.analysis.ranks.averaging import Cause, Unaveraged, unaveraged
from tensorlens.analysis.ranks.rank_texts import ranks_text
from tensorlens.analysis.ranks.replicas import Replica, ReplicaGroup, StateDifference, replica_groups
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.optimizers import listed
from tensorlens.diagnostics.shared.wording import finding
from tensorlens.records.model import Call
from tensorlens.records.report import Diagnostic, Fix, Label


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

    def unaveraged(self, cause: Cause) -> Iterator[UnaveragedFacts]:
        """Yields the gradients that ranks have not averaged for a cause, with the facts of the rank that shows it."""
        for found in self._unaveraged:
            if found.cause == cause:
                yield UnaveragedFacts(self.facts[found.replica.rank], found)


@dataclass(frozen=True)
class UnaveragedFacts:
    """Gradients that ranks have not averaged, and the facts of the rank that shows why."""

    facts: TraceIndex
    found: Unaveraged

    @property
    def is_one(self) -> bool:
        return len(self.found.names) == 1

    def last_call(self, ops: Collection[str]) -> Call | None:
        """Returns the last call of one of `ops` on one of the parameters between the wrapping and the step."""
        replica, trace = self.found.replica, self.facts.trace
        tensors = {replica.wrapped.tensors[position] for position in self.found.positions}
        start, end = replica.wrapped.index, self.found.difference.state(replica).index
        calls = (
            each
            for each in reversed(trace.events[trace.position(start) : trace.position(end)])
            if isinstance(each, Call) and each.op in ops and each.inputs and each.inputs[0].tensor in tensors
        )
        return next(calls, None)

    def diagnostic(
        self, code: str, cause: str, why: str, labels: Sequence[Label | None], fixes: tuple[Fix, ...]
    ) -> RankedDiagnostic:
        """Returns the finding. `cause` is the end of its title; the step and the wrapping are labelled, too."""
        found, difference = self.found, self.found.difference
        state = difference.state(found.replica)
        stepped = self.facts.label("needed_here", state.site, f"{_step_text(difference)} uses these gradients")
        made = finding(
            code,
            "warning",
            f"{_gradient_title(found)}{cause}",
            why,
            [*labels, stepped, wrapped_label(self.facts, found.replica)],
            fixes=fixes,
            evidence={"parameters": list(found.names), "step": difference.step},
        )
        return RankedDiagnostic(made, both_ranks(difference))


def _gradient_title(found: Unaveraged) -> str:
    """Returns "`weight` has another gradient on rank 1 than on rank 0"."""
    names = listed([f"`{name}`" for name in found.names])
    has, gradient = ("have", "other gradients") if len(found.names) > 1 else ("has", "another gradient")
    return f"{names} {has} {gradient} on rank {found.difference.other.rank} than on rank {found.difference.one.rank}"


def both_ranks(found: StateDifference) -> tuple[int, ...]:
    return found.one.rank, found.other.rank


def _step_text(found: StateDifference) -> str:
    """Returns "step 3", or "the end of the run"."""
    return f"step {found.step}" if found.step > 0 else "the end of the run"


def wrapped_label(facts: TraceIndex, replica: Replica) -> Label | None:
    """Labels the line that wraps the module."""
    return facts.label(
        "wrapped_here", replica.wrapped.site, f"wrapped here, for {ranks_text(list(replica.wrapped.group))}"
    )
