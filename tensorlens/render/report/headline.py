"""Writes the short texts that all forms of the report share: headline, outcome, warnings, gaps."""

from __future__ import annotations

import ast
import re
import signal
from collections import Counter

from tensorlens.analysis.sampled_run import has_break
from tensorlens.analysis.training.run_summary import call_count
from tensorlens.journal.rows import SHARED_MEMORY
from tensorlens.records.model import Failure, Gap, Notice, Site, Trace
from tensorlens.records.report import Report
from tensorlens.records.source import one_line, shown_path, tree_of

_INTERNAL = re.compile(r"\s*\(Triggered internally at [^)]*\)")


def run_parts(trace: Trace) -> list[str]:
    """Returns what was run: `demo.py`, `torch 2.13.0`, `6 calls`."""
    rank = trace.script.rank
    parts = [shown_path(trace.script.path, trace.script.folder)]
    parts += [f"rank {rank.number} of {rank.world}"] if rank else []
    calls = count(call_count(trace), "recorded call" if has_break(trace) else "call")
    return [*parts, f"torch {trace.versions.torch}", calls]


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def final_failure(trace: Trace) -> Failure | None:
    """Returns the exception that ended the script; None if none did."""
    position = trace.script.failure
    return trace.failures[position] if position is not None else None


def outcome(trace: Trace, line: str = "") -> str:
    """Says in one line how the script ended. `line` is the place of the exception that ended it."""
    script, failure = trace.script, final_failure(trace)
    code = "" if script.exit_code is None else f", exit code {script.exit_code}"
    subject = "the recorded code" if script.exit_code is None else "the script"
    if script.outcome == "recording":
        return "the recording goes on"
    if script.outcome == "ok":
        return f"{subject} ran to its end{code}"
    if script.outcome == "error":
        announced = next((c.line for c in trace.claims if c.check.startswith("raises") and c.verdict == "holds"), None)
        expected = "" if announced is None else f", as line {announced} says it would"
        if script.exit_code is not None and script.exit_code < 0:
            code = f", and its process was stopped{_signal(script.exit_code)} while it exited"
        raised = f"{failure.type if failure else 'an exception'}{f' at {line}' if line else ''}"
        return f"{subject} ended with {raised}{code}{expected}"
    if script.outcome == "exit":
        return f"the script ended itself{code}"
    if script.outcome == "timeout":
        ended = _signal(script.exit_code)
        return f"the script was stopped at its time limit{ended}; the report covers what ran until then"
    if script.outcome == "interrupted":
        return f"the script was interrupted{code}; the report covers what ran until then"
    return f"the script was killed{_signal(script.exit_code)}; the report covers what was recorded until then"


def is_well(trace: Trace) -> bool:
    """Returns whether the script ended by itself, without an error, or is still being recorded."""
    return trace.script.outcome in ("ok", "exit", "recording") and trace.script.exit_code in (0, None)


def reference(trace: Trace) -> str:
    """Returns the result of the comparison with a second run, in one line; "" without `--reference`."""
    comparison = trace.reference
    if comparison is None:
        return ""
    later = f"; later passes are not judged: {comparison.reason}" if comparison.reason else ""
    if comparison.differences:
        number, index = len(comparison.differences), comparison.differences[0].backward
        where = next((f" at {place(trace, event.site)}" for event in trace.events if event.index == index), "")
        differ = f"{count(number, 'gradient')} of the pass{where} {'differs' if number == 1 else 'differ'}"
        return f"reference: {differ} from a second run with copies; later passes are not judged"
    if not comparison.compared:
        return f"reference: nothing was compared: {comparison.reason or 'there was no backward pass'}"
    custom = dict.fromkeys(f"`{formula.function}.backward`" for formula in trace.inspection.formulas)
    wrong = f"; {', '.join(custom)} itself was measured to be wrong" if custom else ""
    return (
        f"reference: the gradients of {passes(len(comparison.compared))} agree with a second run with copies: no "
        f"unnoticed write to a saved tensor changed them (this says nothing about other mistakes){wrong}{later}"
    )


def eager(trace: Trace) -> str:
    """Returns the result of the comparison with a run that compiles nothing; "" without `--reference=eager`."""
    comparison = trace.eager
    if comparison is None:
        return ""
    if comparison.raised:
        return f"eager: a second run compiles nothing, and {comparison.raised}"
    if comparison.differences:
        number, index = len(comparison.differences), comparison.differences[0].backward
        where = next((f" at {place(trace, event.site)}" for event in trace.events if event.index == index), "")
        differ = f"{count(number, 'gradient')} of the pass{where} {'differs' if number == 1 else 'differ'}"
        agreed = len(comparison.compared) - 1
        before = f"{passes(agreed)} before it {'agrees' if agreed == 1 else 'agree'}; " if agreed else ""
        return f"eager: {differ} from a second run that compiles nothing; {before}later passes are not judged"
    if not comparison.compared:
        return f"eager: nothing was compared: {comparison.reason or 'there was no backward pass'}"
    random = "; a compiled run with its random numbers was compared: the program's own draws others"
    rounding = f"; {count(comparison.rounding, 'gradient')} differ by rounding" if comparison.rounding else ""
    later = f"; later passes are not judged: {comparison.reason}" if comparison.reason else ""
    return (
        f"eager: every gradient of {passes(len(comparison.compared))} agrees with a second run that compiles "
        f"nothing{random if comparison.random else ''}{rounding}{later}"
    )


def passes(number: int) -> str:
    return "1 backward pass" if number == 1 else f"{number} backward passes"


def _signal(code: int | None) -> str:
    if code is None or code >= 0:
        return "" if code is None else f", exit code {code}"
    try:
        return f" by {signal.Signals(-code).name}"
    except ValueError:
        return f" by signal {-code}"


def place(trace: Trace, site: int | Site | None) -> str:
    """Returns `demo.py:7`; "" for no site."""
    if site is None:
        return ""
    span = trace.sites[site].span if isinstance(site, int) else site.span
    return f"{shown_path(span.file, trace.script.folder)}:{span.line}"


def warnings_noticed(report: Report) -> list[tuple[str, str, int]]:
    """Returns (place, warning, how often) for each warning that was emitted and that no finding explains."""
    trace = report.trace
    counts: Counter[tuple[str, str]] = Counter()
    for event in trace.events:
        if isinstance(event, Notice) and event.index not in report.explained:
            counts[place(trace, event.site), f"{event.category}: {_warning_text(event.message)}"] += 1
    return [(*key, number) for key, number in counts.items()]


def _warning_text(message: str) -> str:
    """Returns the first line of a warning without the place in PyTorch's C++ sources."""
    first, _, rest = message.strip().partition("\n")
    return one_line(_INTERNAL.sub("", first)) + (" ..." if rest.strip() and not _INTERNAL.match(rest.strip()) else "")


def gaps(trace: Trace) -> list[tuple[str, str, int]]:
    """Returns (first place, reason, how often) for the things that the tracer could not see."""
    counts: dict[str, tuple[str, int]] = {}
    for event in trace.events:
        if isinstance(event, Gap) and event.reason != SHARED_MEMORY:
            first, number = counts.get(event.reason, (place(trace, event.site), 0))
            counts[event.reason] = first, number + event.count
    rows = [(first, one_line(reason), number) for reason, (first, number) in counts.items()]
    folded = trace.events[-1].index + 1 - len(trace.events) if trace.events else 0
    folded -= sum(not switch.recording and not switch.ended for switch in trace.inspection.switches)
    if folded > 0:
        rows.append(("", f"{count(folded, 'call')} of this long run were folded into counts", 1))
    return rows


def shared_memory(trace: Trace) -> str:
    """Returns a sentence if arrays outside torch share memory with tensors of the run, else ""."""
    shared = any(isinstance(event, Gap) and event.reason == SHARED_MEMORY for event in trace.events)
    text = "tensors share memory with arrays outside torch: the story lists no writes through those arrays"
    return text if shared else ""


def docstring(trace: Trace) -> tuple[str, list[str]]:
    """Returns the title and the paragraphs of the script's docstring; ("", []) if it has none."""
    tree = tree_of(script_source(trace))
    text = (ast.get_docstring(tree) if tree else "") or ""
    title, _, rest = text.strip().partition("\n")
    paragraphs = [one_line(part) for part in rest.strip().split("\n\n")]
    return title.strip(), [part for part in paragraphs if part]


def docstring_lines(trace: Trace) -> range:
    """Returns the lines of the script's docstring."""
    tree = tree_of(script_source(trace))
    if tree is None or not docstring(trace)[0]:
        return range(0)
    body = tree.body
    return range(body[0].lineno, (body[0].end_lineno or body[0].lineno) + 1)


def script_file(trace: Trace) -> str:
    """Returns the key of the script's own file in the sources of the trace. `script.path` is only the path as typed."""
    script = trace.script
    name = script.path.replace("\\", "/").rpartition("/")[2]
    candidates = [script.path, f"{script.folder}/{name}", f"{script.folder}\\{name}", "<stdin>"]
    if not script.path.startswith("-"):  # a directory or a zip file
        candidates += [f"{script.folder}/__main__.py", f"{script.folder}/{name}/__main__.py"]
    return next((file for file in candidates if file in trace.sources), script.path)


def script_source(trace: Trace) -> str:
    return trace.sources.get(script_file(trace), "")
