"""Finds the cause of `ddp-hook-lost`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.timeline import DATA_SET
from tensorlens.diagnostics.shared.ranked_facts import RankedDiagnostic, RankedFacts, UnaveragedFacts
from tensorlens.diagnostics.shared.wording import as_written, fix

_WHY = (
    "`DistributedDataParallel` put a hook on the node that accumulates each gradient; a parameter that gets another "
    "dtype or device gets a new node"
)


def find(ranks: RankedFacts) -> Iterator[RankedDiagnostic]:
    """Reports gradients that the wrapper's hook no longer sees."""
    for each in ranks.unaveraged("hook lost"):
        yield _report(each)


def _report(unaveraged: UnaveragedFacts) -> RankedDiagnostic:
    facts = unaveraged.facts
    replaced = unaveraged.last_call((DATA_SET,))
    by = "" if replaced is None else f": {as_written(facts, replaced)} took its hook away"
    them = "it" if unaveraged.is_one else "them"
    label = facts.label(
        "replaced_here", None if replaced is None else replaced.site, f"gives {them} other memory, without the hook"
    )
    fixes = (
        fix("move or convert the module before it is wrapped", place=None if label is None else label.span),
        fix("or wrap it again afterwards"),
    )
    return unaveraged.diagnostic("ddp-hook-lost", by, _WHY, [label], fixes)
