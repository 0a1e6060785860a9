"""Findings: one file each, named after its code. `diagnose` runs those that a failure or warning of the run names, and
the detectors of the mistakes that raise nothing."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from tensorlens.records.error_messages import classify, entries, entry, find

if TYPE_CHECKING:
    from tensorlens.analysis.trace_index import TraceIndex
    from tensorlens.records.model import Trace
    from tensorlens.records.report import Diagnostic

_ORDER = {"error": 0, "warning": 1, "note": 2}


def diagnose(trace: Trace) -> tuple[Diagnostic, ...]:
    """All findings of a run: errors first, then warnings and notes, each group in the order of the run."""
    from tensorlens.analysis.trace_index import (
        TraceIndex,  # not above: `errors` reads pages from this package, and no facts
    )

    facts = TraceIndex(trace)
    codes = dict.fromkeys(failure.kind for failure in trace.failures if failure.kind)
    codes.update(dict.fromkeys(filter(None, (classify(notice.message) for notice in facts.notices()))))
    codes.update(dict.fromkeys(_unannounced()))
    found: list[Diagnostic] = []
    for code in codes:
        module = _module(code)
        if module is not None and hasattr(module, "find"):
            found.extend(_findings(module, facts))
    found.extend(_unexplained(facts, {d.code for d in found}))
    found.extend(_proven(facts, found))
    return tuple(sorted(_once(map(_weighed, found)), key=lambda diagnostic: _ORDER[diagnostic.severity]))


def load() -> None:
    """Import what every run needs."""
    from tensorlens.analysis import trace_index  # noqa: F401
    from tensorlens.diagnostics.numerics import gradient_differs_from_reference  # noqa: F401
    from tensorlens.diagnostics.shared import unexplained  # noqa: F401

    for code in _unannounced():
        _module(code)


def _unannounced() -> list[str]:
    """The codes of the mistakes that raise nothing: they are looked for in every run."""
    return [item.code for item in entries() if item.kind == "silent"]


def _findings(module: ModuleType, facts: TraceIndex) -> list[Diagnostic]:
    """What a finder finds; one that breaks on a trace it did not expect leaves the failure to be told as it is."""
    try:
        return list(module.find(facts))
    except Exception:
        if os.environ.get("TENSORLENS_DEBUG"):
            raise
        return []


def _unexplained(facts: TraceIndex, explained: set[str]) -> Iterator[Diagnostic]:
    """The exception that ended the script, told honestly, where no finding explains it."""
    from tensorlens.diagnostics.shared.unexplained import find_unexplained

    number = facts.trace.script.failure
    if number is not None and not explained & _kinds(facts.trace.failures[number].message):
        yield from find_unexplained(facts, facts.trace.failures[number])


def _proven(facts: TraceIndex, found: list[Diagnostic]) -> Iterator[Diagnostic]:
    """A gradient that a second run proves wrong, where no finding says so."""
    from tensorlens.diagnostics.numerics.gradient_differs_from_reference import find_unfound
    from tensorlens.diagnostics.shared.proof import PROVEN

    if not any(note.startswith(PROVEN) for diagnostic in found for note in diagnostic.notes):
        yield from find_unfound(facts)


def _weighed(diagnostic: Diagnostic) -> Diagnostic:
    from tensorlens.diagnostics.shared.proof import weighed

    return weighed(diagnostic)


def _once(found: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """Each finding once, with how often the same was found at the same lines."""
    alike: dict[object, list[Diagnostic]] = {}
    for diagnostic in found:
        places = tuple((label.role, label.span) for label in diagnostic.labels)
        alike.setdefault((diagnostic.code, diagnostic.severity, diagnostic.title, places), []).append(diagnostic)
    for first, *more in alike.values():
        again = f"{len(more)} more times" if len(more) > 1 else "once more"
        told = (f"the same was recorded {again}, at the same lines",) if more else ()
        yield replace(first, notes=(*first.notes, *told))


def _kinds(message: str) -> set[str]:
    return set(find(message))


def _module(code: str) -> ModuleType | None:
    """The module that finds what a code names; a trace file may name any."""
    if entry(code) is None:
        return None
    path = finders().get(code.replace("-", "_"))
    return importlib.import_module(path) if path else None


@cache
def finders() -> dict[str, str]:
    """The modules of this package, by the name of their file: a code keeps its name in whatever folder it is."""
    folder = Path(__file__).parent
    found: dict[str, str] = {}
    for path in folder.rglob("*.py"):
        found[path.stem] = ".".join((__name__, *path.relative_to(folder).with_suffix("").parts))
    return found
