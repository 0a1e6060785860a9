"""Writes how a traced program ended: the last rows of its journal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorlens.journal.rows import ClaimRow, OutcomeRow
from tensorlens.records.distributed import EndedAt
from tensorlens.tracer.entry.exit_state import write_end
from tensorlens.tracer.isolation.guard import ErrorGuard
from tensorlens.tracer.recording.journal_writer import JournalWriter
from tensorlens.tracer.recording.recorder import Recorder

if TYPE_CHECKING:  # imported only if the script has claims to check
    from tensorlens.tracer.entry.claim_checker import ClaimChecker

FORKED = "a process was forked: what runs in it is not traced"


def write_outcome(
    recorder: Recorder,
    namespace: dict[str, object],
    error: BaseException | None,
    ended_at: float | None = None,
    checker: ClaimChecker | None = None,
) -> None:
    """Writes the exception that ended the program, the state of its tensors, its claims, and the outcome. `ended_at` is
    the time of a rank's end."""
    if ended_at is not None:
        recorder.rows.write_fact(EndedAt, ended_at)
    if recorder.sampling is not None:
        recorder.sampling.end()
    outcome, exit_code = "ok", 0
    failure: int | None = None
    if isinstance(error, SystemExit):
        outcome, exit_code = "exit", _exit_code(error)
    elif error is not None:
        outcome, exit_code = ("interrupted", 130) if isinstance(error, KeyboardInterrupt) else ("error", 1)
        with ErrorGuard(recorder, "the exception that ended the run"):
            failure = recorder.note_ending(error)
    traceback = None if error is None else error.__traceback__
    if recorder.statistics is not None:
        recorder.statistics.end()
    with ErrorGuard(recorder, "the state at the end"):
        write_end(recorder, namespace, traceback)
    with ErrorGuard(recorder, "a claim"):
        for claim in () if checker is None else checker.results():
            recorder.rows.write(ClaimRow, tuple(getattr(claim, name) for name in claim.__slots__))
    recorder.rows.write(OutcomeRow, outcome, exit_code, failure)


def _exit_code(error: SystemExit) -> int:
    if error.code is None:
        return 0
    return error.code & 0xFF if isinstance(error.code, int) else 1


def leave(recorder: Recorder, sink: JournalWriter, status: int) -> None:
    """Writes the outcome of a program that calls `os._exit`."""
    if recorder.sampling is not None:
        recorder.sampling.end()
    recorder.rows.write(OutcomeRow, "exit", status, None)
    try:
        sink.flush()
    except KeyboardInterrupt:  # the program is leaving already
        sink.flush()


def stop_in_copy(recorder: Recorder, sink: JournalWriter) -> None:
    """Stops a recorder in a forked child: the journal belongs to its parent."""
    recorder.after_fork()
    recorder.paused = True
    if recorder.sampling is not None:
        recorder.sampling.stop()
    sink.abandon()
