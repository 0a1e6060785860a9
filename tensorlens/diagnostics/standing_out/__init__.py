"""Says what stands out in the training of a run: measured facts, one sentence each, that may be intended.

A finding of the other families says that something is wrong. A sentence here says only what is so: each module of a
subject, a folder, has a function `find` that yields them. What a finding of the report says already is left out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from itertools import chain

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining, measured_training
from tensorlens.diagnostics.shared.standing_out_text import Finder
from tensorlens.diagnostics.standing_out.finders import FINDERS, SAID_BY
from tensorlens.records.report import Diagnostic, StandingOut

_NUMBER = re.compile(r"\d[\d,.]*(?:e[+-]?\d+)?")
_NUMBER_OR_CODE = re.compile(r"`[^`]*`|(?<![\w.])\d[\d,.]*(?:e[+-]?\d+)?\b")  # but "the 2nd"
_MOST_ALIKE = 3  # sentences about things whose names differ in numbers, as `layers[0]` and `layers[1]`


def standing_out(facts: TraceIndex, findings: Collection[Diagnostic] = ()) -> tuple[StandingOut, ...] | None:
    """Returns what stands out and no finding says; None if the training was not measured."""
    training = measured_training(facts)
    if training is None:
        return None
    found = ((find, each) for find in FINDERS for each in _found(find, training))
    return tuple(
        _each_once(each for find, each in found if not _is_said(each, SAID_BY.get(find, frozenset()), findings))
    )


def _each_once(found: Iterable[StandingOut]) -> Iterator[StandingOut]:
    """Yields the first of the sentences that name the same lines and differ in numbers only, and counts the others."""
    alike: dict[object, dict[str, list[StandingOut]]] = {}
    for each in found:
        lines = tuple((label.span.file, label.span.line) for label in each.labels)
        things = alike.setdefault((_NUMBER.sub("#", each.text), lines), {})
        things.setdefault(_NUMBER_OR_CODE.sub(_kept_code, each.text), []).append(each)
    for things in alike.values():
        groups = list(things.values())
        for first, *others in [list(chain(*groups))] if len(groups) > _MOST_ALIKE else groups:
            more = len({each.text for each in others} - {first.text})
            rest = f" (and {more:,} more like it, with other numbers)" if more else ""
            yield replace(first, text=f"{first.text}{rest}")


def _kept_code(found: re.Match[str]) -> str:
    return found[0] if found[0].startswith("`") else "#"


def _is_said(each: StandingOut, codes: frozenset[str], findings: Collection[Diagnostic]) -> bool:
    """Returns whether a finding with one of the codes labels the main line of a sentence."""
    lines = {(label.span.file, label.span.line) for one in findings if one.code in codes for label in one.labels}
    return any((label.span.file, label.span.line) in lines for label in each.labels[:1])


def _found(find: Finder, training: MeasuredTraining) -> list[StandingOut]:
    """Runs a finder. If it raises on a trace that it does not expect, it finds nothing."""
    try:
        return list(find(training))
    except Exception:
        if os.environ.get("TENSORLENS_DEBUG"):
            raise
        return []
