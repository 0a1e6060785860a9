"""Finds the cause of `fsdp-first-forward-frozen`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.ranks.sharding import FROZEN_FIRST, frozen_at_first, unfreezing
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.optimizers import listed
from tensorlens.diagnostics.shared.wording import finding, fix, severity_of
from tensorlens.records.distributed import Sharded
from tensorlens.records.model import Failure
from tensorlens.records.report import Diagnostic

_WHY = (
    "in the first forward pass, `fully_shard` notes the data type of the parameters that require grad, and converts "
    "gradients back to that"
)


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    """Reports parameters that were frozen in the first forward pass and were trained later."""
    for failure in facts.failures(FROZEN_FIRST):
        group = frozen_at_first(facts, failure)
        if group is not None:
            yield _report(facts, failure, group)


def _report(facts: TraceIndex, failure: Failure, group: Sharded) -> Diagnostic:
    names = listed([f"`{name}`" for name in group.names])
    was = "was" if len(group.names) == 1 else "were"
    unfrozen = unfreezing(facts, group)
    later = facts.label("flag_changed_here", None if unfrozen is None else unfrozen.site, "unfrozen only here")
    place = None if later is None else later.span
    return finding(
        FROZEN_FIRST,
        severity_of(failure),
        f"{names} {was} frozen in the first forward pass, and backward computes {group.computes_in} gradients now",
        _WHY,
        [
            facts.label("called_here", group.sites[1], "the first forward pass: nothing to train is noted"),
            later,
            facts.label("needed_here", failure.site, f"a {group.computes_in} gradient is not converted"),
        ],
        fixes=(
            fix("let the parameters require grad before the first forward pass", place=place),
            fix("or let them require grad for the first forward pass, and freeze them after it"),
        ),
        evidence={"parameters": list(group.names), "computes_in": group.computes_in},
    )
