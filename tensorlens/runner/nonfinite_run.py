"""Searches a second run for the operation that makes the first NaN or infinity, if the first run had one."""

from __future__ import annotations

from dataclasses import replace
from math import isclose
from typing import TYPE_CHECKING

from tensorlens.records.training import FirstNonfinite, NonfiniteSeen

if TYPE_CHECKING:
    from tensorlens.runner.compared_runs import FinishedRun

_CLOSE = 1e-3  # relative: the losses of two runs may differ by rounding


def add_origin(first: FinishedRun, second: FinishedRun, other: str) -> None:
    """Adds to the first run where its first NaN or infinity comes from. `other` says why a second run has other values,
    if it has."""
    seen: NonfiniteSeen = first.reader.facts["nonfinite"][0]
    first.reader.facts["origins"] = [_searched(first, second, seen, other)]


def add_reason(first: FinishedRun, reason: str, searched: bool) -> None:
    """Adds to the first run why it is not known where its first NaN or infinity comes from."""
    seen: NonfiniteSeen = first.reader.facts["nonfinite"][0]
    first.reader.facts["origins"] = [replace(_unknown(seen, reason), searched=searched)]


def _searched(first: FinishedRun, second: FinishedRun, seen: NonfiniteSeen, other: str) -> FirstNonfinite:
    found, origins = second.reader.facts["nonfinite"], second.reader.facts["origins"]
    if not found or not _is_same(seen, found[0]):
        return _unknown(seen, other)
    if not origins:
        return _unknown(seen, "the search itself failed")
    origin: FirstNonfinite = origins[0]
    own, repeated = first.reader.source_sites.records(), second.reader.source_sites.records()
    places = {(site.span, site.function): n for n, site in reversed(list(enumerate(own)))}

    def own_site(number: int | None) -> int | None:
        """Returns the number that a site of the second run has in the first."""
        if number is None or not 0 <= number < len(repeated):
            return None
        return places.get((repeated[number].span, repeated[number].function))

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
