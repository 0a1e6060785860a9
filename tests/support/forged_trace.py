"""Renders saved traces that are well-formed but make no sense, in every form. A test runs it as a program, with a limit
of memory:

    python -m support.forged_trace TRACE EDIT…
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tensorlens.cli.output import Output
from tensorlens.cli.rendered_report import rendered_report
from tensorlens.errors import TraceFileError
from tensorlens.records.trace_file import loads
from tensorlens.render import REPORT_FORMS

HUGE = 2**63
MANY = 20_000
SECONDS = 30.0

Trace = dict[str, Any]


def spans(trace: Trace, **changed: int) -> None:
    for site in trace["sites"]:
        site["span"].update(changed)


def circle(records: list[dict[str, Any]], name: str) -> None:
    for record in records:
        record[name] = (record["id"] + 1) % len(records)


def every(records: list[dict[str, Any]], name: str, value: Any) -> None:
    for record in records:
        if name in record:
            record[name] = value


def versions(trace: Trace) -> None:
    for event in trace["events"]:
        every(event.get("inputs", []) if event["kind"] == "Call" else [], "version", HUGE)
        every(event.get("writes", []), "after", HUGE)


def chain(trace: Trace, table: str, name: str) -> None:
    records = trace[table]
    size = len(records)
    records += [{**records[0], "id": size + n, name: size + n - 1} for n in range(MANY)]


def sources(trace: Trace, text: str) -> None:
    trace["sources"] = dict.fromkeys(trace["sources"], text)


def wide(trace: Trace) -> None:
    sources(trace, "x" * 3_000_000)
    spans(trace, line=1, end_line=1, column=500_000, end_column=2_000_000)


def kinds(trace: Trace, *names: str) -> None:
    failures = trace["failures"]
    trace["failures"] = [{**failure, "kind": name} for name in names for failure in failures]


EDITS: dict[str, Callable[[Trace], object]] = {
    "lines": lambda trace: spans(trace, line=HUGE, end_line=HUGE),
    "columns": lambda trace: spans(trace, column=0, end_column=HUGE),
    "all lines": lambda trace: spans(trace, line=1, end_line=HUGE, end_column=HUGE),
    "bases in a circle": lambda trace: circle(trace["tensors"], "base"),
    "bases in a chain": lambda trace: chain(trace, "tensors", "base"),
    "callers in a circle": lambda trace: circle(trace["sites"], "caller"),
    "callers in a chain": lambda trace: chain(trace, "sites", "caller"),
    "one storage for all": lambda trace: every(trace["tensors"], "storage", 0),
    "counters": lambda trace: every(trace["tensors"], "counter", HUGE),
    "made ahead": lambda trace: every(trace["tensors"], "created_by", HUGE),
    "sizes": lambda trace: every(trace["storages"], "nbytes", HUGE),
    "shapes": lambda trace: every(trace["tensors"], "shape", [HUGE] * 64),
    "dimensions": lambda trace: every(trace["tensors"][:3], "shape", [1] * MANY),
    "totals": lambda trace: every(trace["totals"], "count", HUGE),
    "nodes": lambda trace: every(trace["events"], "nodes", [0, HUGE]),
    "starts": lambda trace: every(trace["events"], "started", 0),
    "versions": versions,
    "indices": lambda trace: [event.update(index=n * 10**15) for n, event in enumerate(trace["events"])],
    "lines of source": lambda trace: sources(trace, "x\n" * 500_000),
    "a wide line": wide,
    "codes that name no finding": lambda trace: kinds(
        trace, "no.such", "..", "proof", "wording", "a" * 10_000, "\u202e"
    ),
}


def main() -> None:
    path, *names = sys.argv[1:]
    text = Path(path).read_text("utf-8")
    for name in names:
        data = json.loads(text)
        EDITS[name](data["trace"])
        started = time.monotonic()
        with suppress(TraceFileError):
            trace = loads(json.dumps(data))
            for form in REPORT_FORMS:
                assert rendered_report(trace, Output(form)).text.strip(), (name, form)
        assert time.monotonic() - started < SECONDS, name


if __name__ == "__main__":
    main()
