"""Records the tests of a session, and adds what was found to pytest's reports.

Nothing is kept of a test but texts of its findings. They are attributes of its reports, so that pytest-xdist takes them
to the process that prints.
"""

from __future__ import annotations

import sys
import unittest
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tensorlens.records.error_messages import entry
from tensorlens.testing.plugin import FAILING, uses_lens
from tensorlens.testing.reference_tests import HIDDEN_RUNS, KEPT, ROLE, run_twice

if TYPE_CHECKING:
    from tensorlens.records.report import Report
    from tensorlens.testing.item_recording import ItemRecording

_NAMED = 10  # tests that the summary names for one reason
_EARLY = pytest.StashKey[bool]()
_NOTES = pytest.StashKey[list[tuple[str, str]]]()
TEXTS = {
    "early": "not recorded, because PyTorch was imported only while they ran",
    "unrepeatable": "not compared as a whole",
    "internal": "not examined as a whole, because of an error in tensorlens",
}
TRACE = pytest.StashKey[Any]()
"""The trace of a test that has ended, until its report is made."""


class RecordedTests:
    """The hooks of a session with `--tensorlens`. In `mode` "" only tests that use the fixture `lens` are recorded."""

    def __init__(self, config: pytest.Config, mode: str) -> None:
        self._config, self._mode = config, mode
        self._pages = config.getoption("tensorlens_html")
        self._compares = bool(config.getoption("tensorlens_reference"))
        self._ignored = _known_codes(config.getini("tensorlens_ignore") if mode else (), "tensorlens_ignore")
        self._counts: Counter[str] = Counter()
        self._named: dict[str, list[str]] = {kind: [] for kind in TEXTS}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items if self._mode else ():
            for marker in item.iter_markers("tensorlens"):
                _check(item, marker)

    # --- one test -----------------------------------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        if not self._mode or not (self._compares or _asks_for_reference(item)):
            return None
        run_twice(item, nextitem, self.judge)
        return True

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None]:
        self._begin(item)
        try:
            return (yield)
        except BaseException as error:
            self._stop(item, error)
            raise

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None]:
        try:
            result = yield
        except BaseException as error:
            self._stop(item, error)
            raise
        self._stop(item, _kept_error(item))
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None]:
        try:
            return (yield)
        finally:
            self._close(item)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        try:
            if call.when != "teardown":
                self._add_findings(item, report)
        except Exception as error:
            note(item, "internal", f"{item.nodeid}: {type(error).__name__}: {error}")
        if notes := item.stash.get(_NOTES, None):
            vars(report)["tensorlens_notes"] = [list(each) for each in notes]
            del item.stash[_NOTES]
        return report

    def _begin(self, item: pytest.Item) -> None:
        asked = uses_lens(item)
        if not self._mode and not asked:
            return
        try:
            if asked:
                import torch  # noqa: F401
            if not _is_torch_loaded():
                item.stash[_EARLY] = True
                return
            from tensorlens.testing.item_recording import RECORDING, ItemRecording

            role = item.stash.get(ROLE, None)
            recording = ItemRecording(item, asked, sampled=role is not None, copies=role == "copies")
            item.stash[RECORDING] = recording
            recording.start()
        except Exception as error:
            note(item, "internal", f"{item.nodeid}: {type(error).__name__}: {error}")

    def _stop(self, item: pytest.Item, error: BaseException | None) -> None:
        recording = _recording(item)
        if recording is None or not recording.is_running:
            return
        try:
            recording.stop(None if _is_outcome(error) else error)
            item.stash[TRACE] = recording.trace()
        except Exception as failed:
            note(item, "internal", f"{item.nodeid}: {type(failed).__name__}: {failed}")

    def _close(self, item: pytest.Item) -> None:
        recording = _recording(item)
        try:
            if recording is not None:
                from tensorlens.testing.item_recording import RECORDING

                del item.stash[RECORDING]
                recording.close()
                if ROLE in item.stash:
                    item.stash[KEPT] = recording
            elif item.stash.get(_EARLY, False) and _is_torch_loaded():
                note(item, "early", item.nodeid)
        except Exception as failed:
            note(item, "internal", f"{item.nodeid}: {type(failed).__name__}: {failed}")
        _drop(item, TRACE)
        _drop(item, _EARLY)

    # --- reports ------------------------------------------------------------------------------------------------------

    def _add_findings(self, item: pytest.Item, report: pytest.TestReport) -> None:
        trace = item.stash.get(TRACE, None)
        if trace is None or not self._mode or report.skipped or hasattr(report, "wasxfail"):
            return
        role = item.stash.get(ROLE, "")
        if role in HIDDEN_RUNS or (role and report.passed):  # a run that passes is judged when it has been compared
            return
        del item.stash[TRACE]
        if report.failed or trace.events:
            from tensorlens.diagnostics import report_on

            self.judge(item, report, report_on(trace))

    def judge(self, item: pytest.Item, report: pytest.TestReport, found: Report) -> None:
        """Adds what was found to a report of pytest, and fails it if a finding is about wrong gradients."""
        from tensorlens.testing import judged_report

        known = judged_report.allowed(found, self._ignored | _allowed_codes(item))
        wrong = judged_report.failing(known)
        if report.failed and known.diagnostics:
            report.sections.append(("tensorlens", judged_report.text_of(known, known.diagnostics)))
        elif report.passed and wrong and self._mode == FAILING:
            _fail(report, known)
        if report.failed and self._pages:
            self._write_page(item, found)

    def _write_page(self, item: pytest.Item, found: Report) -> None:
        from tensorlens.render import render
        from tensorlens.testing.page_names import page_name

        folder = Path(self._pages)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / page_name(item.nodeid)).write_text(render(found, "html"), "utf-8")

    # --- the process that prints --------------------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        word = getattr(report, "tensorlens_word", "")
        return ("failed", "G", word) if word and report.failed else None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for kind, text in getattr(report, "tensorlens_notes", ()):
            self._counts[kind] += 1
            if len(self._named[kind]) < _NAMED:
                self._named[kind].append(text)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._counts:
            return
        terminalreporter.section("tensorlens")
        for kind, text in TEXTS.items():
            named, number = self._named[kind], self._counts[kind]
            if number:
                terminalreporter.line(f"{number} test{'s' if number > 1 else ''} {text}:")
                for line in named:
                    terminalreporter.line(f"  {line}")
                if number > len(named):
                    terminalreporter.line(f"  and {number - len(named)} more")


def note(item: pytest.Item, kind: str, text: str) -> None:
    """Keeps a line for the summary: the next report of the test has it."""
    item.stash.setdefault(_NOTES, []).append((kind, " ".join(text.split())[:300]))


def _drop(item: pytest.Item, key: pytest.StashKey[Any]) -> None:
    if key in item.stash:
        del item.stash[key]


def _fail(report: pytest.TestReport, found: Report) -> None:
    """Makes a report of a passing test one of a failing test, with the findings as its text."""
    from tensorlens.testing import judged_report

    wrong = judged_report.failing(found)
    text = judged_report.text_of(found, wrong)
    first = wrong[0]
    report.outcome = "failed"
    vars(report)["tensorlens_word"] = judged_report.word_for(wrong)
    try:
        raise WrongGradientsError(text)
    except WrongGradientsError as error:
        shown: Any = pytest.ExceptionInfo.from_exception(error).getrepr(style="value")
    file, line = judged_report.place_of(found, first)
    crash = getattr(shown, "reprcrash", None)
    if crash is not None:
        crash.path, crash.lineno = file or crash.path, line or crash.lineno
        crash.message = f"{first.severity}[{first.code}]: {first.title}"
    report.longrepr = shown


class WrongGradientsError(Exception):
    """Holds the text of findings that fail a test. It is never raised in a test."""

    def __str__(self) -> str:
        return str(self.args[0])


def _recording(item: pytest.Item) -> ItemRecording | None:
    if not _is_torch_loaded():
        return None
    from tensorlens.testing.item_recording import RECORDING

    return item.stash.get(RECORDING, None)


def _is_torch_loaded() -> bool:
    return hasattr(sys.modules.get("torch"), "nn")


def _kept_error(item: pytest.Item) -> BaseException | None:
    """Returns the exception that a `unittest` test has raised: pytest keeps it beside the test."""
    kept = getattr(item, "_excinfo", None)
    return kept[0].value if kept else None


def _is_outcome(error: BaseException | None) -> bool:
    """Returns whether an exception says only that the test is skipped, or is expected to fail."""
    return isinstance(error, pytest.skip.Exception | pytest.xfail.Exception | unittest.SkipTest)


def _asks_for_reference(item: pytest.Item) -> bool:
    return any(marker.kwargs.get("reference") for marker in item.iter_markers("tensorlens"))


def _allowed_codes(item: pytest.Item) -> frozenset[str]:
    return frozenset(code for marker in item.iter_markers("tensorlens") for code in marker.kwargs.get("allow", ()))


def _check(item: pytest.Item, marker: pytest.Mark) -> None:
    """Raises a UsageError if a marker has other arguments than `allow` and `reference`, or a code that does not
    exist."""
    where = f"the marker tensorlens of {item.nodeid}"
    if marker.args or marker.kwargs.keys() - {"allow", "reference"}:
        raise pytest.UsageError(f"{where} takes allow=[codes] and reference=True")
    codes = marker.kwargs.get("allow", ())
    if not isinstance(codes, list | tuple | set | frozenset):
        raise pytest.UsageError(f"{where}: allow takes a list of codes")
    _known_codes(codes, where)


def _known_codes(codes: Any, where: str) -> frozenset[str]:
    for code in codes:
        if not isinstance(code, str) or entry(code) is None:
            raise pytest.UsageError(f"{where}: no finding has the code {code!r} (`tensorlens errors` lists all)")
    return frozenset(codes)
