"""Finds the lines that may be at fault for `cuda-error-reported-later`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tensorlens.analysis.queued_work import QueuedWork, queued_work
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.rejected import of_failure
from tensorlens.diagnostics.shared.wording import finding, fix
from tensorlens.records.model import Backward, Call, Failure
from tensorlens.records.report import Diagnostic, Fix, Label

CODE = "cuda-error-reported-later"
MAX_LABELS = 5
ASSERTION = "device-side assert triggered"
_WHAT = re.compile(r"CUDA error: ([^\n]+)")
_LATE, _BY_PYTORCH = "asynchronously reported", "TORCH_USE_CUDA_DSA"
"""What PyTorch's message says unless `CUDA_LAUNCH_BLOCKING` is set, and what it says always."""
_QUEUED = "queued on the GPU here; may have failed"
_OVER = "every later CUDA call of this process fails with the same error"


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    """Reports the line where a CUDA error was noticed first, and the lines that queued work before it."""
    failures = list(facts.failures(CODE))
    if failures:
        first, last = failures[0], failures[-1]
        waited = _BY_PYTORCH in first.message and _LATE not in first.message
        yield (_waited_for if waited else _noticed_late)(facts, first, last)


def _noticed_late(facts: TraceIndex, first: Failure, last: Failure) -> Diagnostic:
    work, rejected, what = queued_work(facts, first.index), of_failure(facts, first), _what(first)
    checked = work.checked if what == ASSERTION else ()
    others = [event for event in (*checked, *work.events) if not facts.same_line(event.site, first.site)]
    earlier = list(dict.fromkeys(others))
    labels = [
        facts.label("rejected_here", first.site, "noticed here; an earlier line may have failed"),
        *_again(facts, first, last),
    ]
    for event in earlier[: MAX_LABELS - len(labels)]:
        text = "checks its values on the GPU; may have failed" if event in checked else _QUEUED
        labels.append(facts.label("queued_here", event.site, text, event.index))
    return finding(
        CODE,
        of_failure(facts, last).severity,
        f"work on the GPU failed ({what}), and PyTorch noticed it at {rejected.written()}",
        f"a line only queues its work on the GPU, and an error shows later: {_count(facts, work, earlier)}",
        labels,
        fixes=_fixes(facts, checked),
        detail=(_unmarked(facts, work), _OVER),
        evidence={"op": first.op, "message": first.message, "lines": len(earlier), "complete": work.whole},
    )


def _count(facts: TraceIndex, work: QueuedWork, earlier: Sequence[Call | Backward]) -> str:
    """Says how many lines queued work, and since when."""
    wait = facts.span(None if work.wait is None else work.wait.site)
    since = "" if wait is None else f" since line {wait.line} last waited for it"
    if not earlier:
        return f"no other line is known to have queued work{since}"
    some = "at least " if not work.whole else ""
    return f"{some}{len(earlier)} other line{'s' if len(earlier) > 1 else ''} queued work{since}"


def _unmarked(facts: TraceIndex, work: QueuedWork) -> str:
    """Says what may have queued the work that failed and has no mark."""
    wait = facts.span(None if work.wait is None else work.wait.site)
    streams = "" if wait is None else f", and what was queued on another stream before line {wait.line} waited"
    return f"not searched: what compiled code queued{streams}"


def _waited_for(facts: TraceIndex, first: Failure, last: Failure) -> Diagnostic:
    """Reports an error of a run with `CUDA_LAUNCH_BLOCKING`. CUDA reads that variable at the first call."""
    rejected, what = of_failure(facts, first), _what(first)
    on_cpu = "run this line with tensors on the CPU: a value that is out of range raises there"
    place = facts.span(first.site)
    return finding(
        CODE,
        of_failure(facts, last).severity,
        f"work on the GPU failed ({what}) at {rejected.written()}",
        "with `CUDA_LAUNCH_BLOCKING` set before the first CUDA call, what failed is part of this line",
        [facts.label("rejected_here", first.site, "waited for its work, which failed"), *_again(facts, first, last)],
        fixes=(fix(on_cpu, place=place),) if what == ASSERTION else (),
        detail=(_OVER,),
        evidence={"op": first.op, "message": first.message},
    )


def _what(failure: Failure) -> str:
    found = _WHAT.search(failure.message)
    return found[1].strip() if found is not None else ""


def _again(facts: TraceIndex, first: Failure, last: Failure) -> list[Label | None]:
    """Labels the line that ended the script, if the script caught the first error."""
    if facts.same_line(first.site, last.site):
        return []
    return [facts.label("needed_here", last.site, "fails too, as every later CUDA call")]


def _fixes(facts: TraceIndex, checked: Sequence[Call]) -> Iterator[Fix]:
    script = facts.trace.script.path
    yield fix(
        f"run `CUDA_LAUNCH_BLOCKING=1 tensorlens explain {script}`: each line waits, and the one that fails raises"
    )
    if checked:
        text = "or run this line with tensors on the CPU: a value that is out of range raises there, at its own line"
        yield fix(text, place=facts.span(checked[0].site))
