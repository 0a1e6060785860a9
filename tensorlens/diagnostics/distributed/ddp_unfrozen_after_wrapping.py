"""Finds the cause of `ddp-unfrozen-after-wrapping`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.timeline import FLAG_SETS
from tensorlens.diagnostics.shared.ranked_facts import RankedDiagnostic, RankedFacts, UnaveragedFacts
from tensorlens.diagnostics.shared.wording import fix

_WHY = "`DistributedDataParallel` averages the gradients of the parameters that require grad when it is made"


def find(ranks: RankedFacts) -> Iterator[RankedDiagnostic]:
    """Reports gradients of parameters that did not require grad when they were wrapped."""
    for each in ranks.unaveraged("frozen when wrapped"):
        yield _report(each)


def _report(unaveraged: UnaveragedFacts) -> RankedDiagnostic:
    it, requires = ("it", "it requires") if unaveraged.is_one else ("they", "they require")
    changed = unaveraged.last_call(FLAG_SETS)
    site = None if changed is None else changed.site
    label = unaveraged.facts.label("flag_changed_here", site, f"{requires} grad from here on")
    fixes = (
        fix("let all parameters that are to be trained require grad before the module is wrapped"),
        fix("or wrap the module again after this line", place=None if label is None else label.span),
    )
    cause = f": {it} did not require grad when wrapped"
    return unaveraged.diagnostic("ddp-unfrozen-after-wrapping", cause, _WHY, [label], fixes)
