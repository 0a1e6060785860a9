"""Searches a second run for the operation that makes the first NaN or infinity, if the first run had one."""

from __future__ import annotations

import os
from dataclasses import replace
from math import isclose
from typing import TYPE_CHECKING

from tensorlens.records.training import FirstNonfinite, NonfiniteSeen
from tensorlens.runner.ranks import rank_in

if TYPE_CHECKING:
    from tensorlens.runner.compared_runs import ComparedRuns, FinishedRun

_CLOSE = 1e-3  # relative: the losses of two runs may differ by rounding
OTHER_RUN = "a second run from the same random state has other values"
STOPPED = "the second run was stopped"
DISTRIBUTED = "one process of a distributed run can't be repeated alone"
SAMPLED = "the run recorded some of its steps"
COMPILED = "the run has compiled code, inside which no call is seen"
NO_INPUT = "a second run has other values, and its standard input is empty: it can't be read again"


def search(runs: ComparedRuns, first: FinishedRun) -> None:
    """Adds to the first run where its first NaN or infinity comes from, or why that is not known."""
    facts = first.reader.facts
    seen: NonfiniteSeen = facts["nonfinite"][0]
    try:
        reason = _why_not(first)
        origin = replace(_unknown(seen, reason), searched=False) if reason else _searched(runs, first, seen)
        facts["origins"] = [origin]
    except KeyboardInterrupt:
        facts["origins"] = [_unknown(seen, STOPPED)]
    except Exception as error:  # an internal error: the report of the first run is still good
        if os.environ.get("TENSORLENS_DEBUG"):
            raise
        facts["origins"] = [_unknown(seen, f"the search itself failed ({type(error).__name__}: {error})")]


def _why_not(first: FinishedRun) -> str:
    """Returns why a run is not repeated; "" if it is."""
    if first.was_stopped:
        return "the run was stopped"
    if rank_in(os.environ) is not None:
        return DISTRIBUTED
    if first.reader.facts["chosen"]:
        return SAMPLED
    if first.reader.facts["compiled"]:
        return COMPILED
    return ""


def _searched(runs: ComparedRuns, first: FinishedRun, seen: NonfiniteSeen) -> FirstNonfinite:
    second = runs.searching()
    if second.was_stopped:
        return _unknown(seen, STOPPED)
    found, origins = second.reader.facts["nonfinite"], second.reader.facts["origins"]
    if not found or not _is_same(seen, found[0]):
        return _unknown(seen, OTHER_RUN if runs.repeats_input() else NO_INPUT)
    if not origins:
        return _unknown(seen, "the search itself failed")
    origin: FirstNonfinite = origins[0]
    own, other = first.trace().sites, second.trace().sites
    places = {(site.span, site.function): n for n, site in reversed(list(enumerate(own)))}

    def own_site(number: int | None) -> int | None:
        """Returns the number that a site of the second run has in the first."""
        if number is None or not 0 <= number < len(other):
            return None
        return places.get((other[number].span, other[number].function))

    return replace(
        origin,
        index=seen.index,
        site=own_site(origin.site),
        then_site=own_site(origin.then_site),
        given_site=own_site(origin.given_site),
        seen_site=own_site(origin.seen_site),
    )


def _is_same(one: NonfiniteSeen, other: NonfiniteSeen) -> bool:
    """Returns whether two runs had the same calls, and the same losses but for rounding, until something was not
    finite."""
    if replace(one, losses=()) != replace(other, losses=()) or len(one.losses) != len(other.losses):
        return False
    return all(isclose(a, b, rel_tol=_CLOSE) for a, b in zip(one.losses, other.losses, strict=True))


def _unknown(seen: NonfiniteSeen, reason: str) -> FirstNonfinite:
    return FirstNonfinite(seen.index, "", reason, passes=seen.passes, steps=seen.steps)
