"""Runs a test a second time, with copies of what autograd saves, and compares the gradients of both runs.

If they differ, the test runs a third time, without copies: only a test whose gradients are the same then repeats
itself, so that the copies are what makes the difference.
"""

from __future__ import annotations

import random
import sys
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.runner import runtestprotocol

if TYPE_CHECKING:
    from tensorlens.records.report import Report
    from tensorlens.testing.item_recording import ItemRecording

ROLE = pytest.StashKey[str]()
"""Which of the runs is being made: "first", "copies" or "again"."""
KEPT = pytest.StashKey["ItemRecording"]()
"""The recording of the run that has just been made."""
Judge = Callable[[pytest.Item, pytest.TestReport, "Report"], None]


HIDDEN_RUNS = ("copies", "again")


def run_twice(item: pytest.Item, nextitem: pytest.Item | None, judge: Judge) -> None:
    """Runs a test and reports it. `judge` receives its findings."""
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    state = RandomState()
    reports, first = _run(item, "first")
    call = next((report for report in reports if report.when == "call" and report.passed), None)
    if first is not None and call is not None:
        after = RandomState()
        try:
            if reason := _compare(item, first, call, state, judge):
                _note(call, "unrepeatable", f"{item.nodeid}: {reason}")
        except Exception as error:
            _note(call, "internal", f"{item.nodeid}: {type(error).__name__}: {error}")
        after.restore()
    ended = pytest.CallInfo.from_call(lambda: item.session._setupstate.teardown_exact(nextitem), when="teardown")
    if ended.excinfo is not None:
        reports[-1] = item.ihook.pytest_runtest_makereport(item=item, call=ended)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


def _run(item: pytest.Item, role: str) -> tuple[list[pytest.TestReport], ItemRecording | None]:
    """Runs a test. What wider scopes than the test have set up stays for the next run."""
    item.stash[ROLE] = role
    try:
        reports = runtestprotocol(item, log=False, nextitem=item.parent)  # type: ignore[arg-type]  # its `listchain`
    finally:
        del item.stash[ROLE]
    recording = item.stash.get(KEPT, None)
    if recording is not None:
        del item.stash[KEPT]
    return reports, recording


def _again(item: pytest.Item, role: str, state: RandomState) -> ItemRecording | None:
    """Runs a test again from the same random state, without warnings. Returns None if it does not pass."""
    state.restore()
    with warnings.catch_warnings(record=True):
        reports, recording = _run(item, role)
    return recording if all(report.passed for report in reports) else None


def _compare(item: pytest.Item, first: ItemRecording, call: pytest.TestReport, state: RandomState, judge: Judge) -> str:
    """Compares the first run with a run with copies. Returns why that decides nothing, or not all; "" if it does."""
    from tensorlens.diagnostics import report_on
    from tensorlens.records.reference import compare

    trace, reason = first.trace(), ""
    if first.reader.passes:
        second = _again(item, "copies", state)
        if second is None:
            reason = "it does not pass a second time"
        elif not compare(first.reader.passes, second.reader.passes).differences or _repeats(item, first, second, state):
            trace = first.compared_trace(second)
            reference = trace.reference
            reason = "" if reference is None or reference.differences else reference.reason
        else:
            reason = "a third run, without copies, has other gradients, too"
    if trace.events:
        judge(item, call, report_on(trace))
    return reason


def _repeats(item: pytest.Item, first: ItemRecording, second: ItemRecording, state: RandomState) -> bool:
    """Returns whether a further run has the gradients of the first, in each pass that was compared with the second."""
    from tensorlens.records.reference import compare

    third = _again(item, "again", state)
    if third is None:
        return False
    again = compare(first.reader.passes, third.reader.passes)
    compared = compare(first.reader.passes, second.reader.passes).compared
    return set(compared) <= set(again.compared) and not again.differences


def _note(report: pytest.TestReport, kind: str, text: str) -> None:
    """Adds a line of the summary to a report."""
    vars(report).setdefault("tensorlens_notes", []).append([kind, text])


class RandomState:
    """The state of the random generators of Python, NumPy and PyTorch."""

    def __init__(self) -> None:
        self._python = random.getstate()
        numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
        self._numpy: Any = None if numpy is None else numpy.random.get_state()
        self._torch = None if torch is None else torch.random.get_rng_state()
        initialized = torch is not None and torch.cuda.is_initialized()
        self._cuda = torch.cuda.get_rng_state_all() if torch is not None and initialized else None

    def restore(self) -> None:
        random.setstate(self._python)
        if self._numpy is not None:
            sys.modules["numpy"].random.set_state(self._numpy)
        if self._torch is not None:
            sys.modules["torch"].random.set_rng_state(self._torch)
        if self._cuda is not None:
            sys.modules["torch"].cuda.set_rng_state_all(self._cuda)
