"""Compares the two runs of a checkpointed function: finds what only the first one ran, such as filling a cache."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from tensorlens.analysis.contexts import failed_backward
from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.edits.statements import module_name
from tensorlens.records.model import Call, Failure, Region, Span
from tensorlens.records.report import Edit

_RANDOM = re.compile("rand|dropout|normal|bernoulli|multinomial|poisson|uniform|exponential|sample")


@dataclass(frozen=True, slots=True)
class Cache:
    """A variable that is computed where it is None, and the edit that computes it wherever operations are recorded."""

    name: str
    edit: Edit | None


def first_run_only(facts: TraceIndex, failure: Failure) -> int | None:
    """Returns the site of a call that a checkpointed function made only in its first run.

    It is the first call in whose place the second run, in the backward that failed, made a call at another site.
    """
    backward = failed_backward(facts, failure)
    for event in () if backward is None else facts.events[facts.trace.position(backward.started) :]:
        checkpoint = facts.event(event.checkpoint) if isinstance(event, Region) and event.entering else None
        if not isinstance(event, Region) or event.name != "recomputation" or not isinstance(checkpoint, Region):
            continue
        first = _calls(facts, checkpoint, "checkpoint", failure.index)
        second = _calls(facts, event, "recomputation", failure.index)
        differing = next(((a, b) for a, b in zip(first, second, strict=False) if a.site != b.site), None)
        if differing is not None:
            return None if differing[0].site in {call.site for call in second} else differing[0].site
    return None


def _calls(facts: TraceIndex, begin: Region, kind: str, failed: int) -> list[Call]:
    """Returns the calls that were made while a context was open."""
    found: list[Call] = []
    depth = 0
    for event in facts.events[facts.trace.position(begin.index) :]:
        if event.index >= failed:
            break
        if isinstance(event, Region) and event.name == kind:
            depth += 1 if event.entering else -1
            if depth == 0:
                break
        elif isinstance(event, Call):
            found.append(event)
    return found


def cache_around(facts: TraceIndex, site: int) -> Cache | None:
    """Returns the variable that the statement at a site sets only if it is None: `if self.x is None: self.x = ...`."""
    span = facts.trace.sites[site].span
    for node in ast.walk(facts.tree(span.file)):
        if isinstance(node, ast.If) and len(node.body) == 1 and not node.orelse:
            inner = node.body[0]
            name = _none_tested(node.test)
            sets = isinstance(inner, ast.Assign) and name in map(plain_name, inner.targets)
            if name is not None and sets and inner.lineno <= span.line <= (inner.end_lineno or inner.lineno):
                return Cache(name, _recomputed(facts, node, span.file))
    return None


def _none_tested(test: ast.expr) -> str | None:
    is_test = isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Is)
    if not is_test or not isinstance(test, ast.Compare) or ast.unparse(test.comparators[0]) != "None":
        return None
    return plain_name(test.left)


def _recomputed(facts: TraceIndex, node: ast.If, file: str) -> Edit | None:
    """Adds `or torch.is_grad_enabled()` to the test, if the statement draws no random numbers."""
    torch, body = module_name(facts, file, "torch"), facts.span_of(node.body[0], file)
    lines = range(body.line, body.end_line + 1)
    inside = (c for c in facts.calls if (s := facts.trace.sites[c.site].span).file == file and s.line in lines)
    if (
        torch is None
        or any(_RANDOM.search(call.op) for call in inside)
        or _RANDOM.search(facts.code_of(node.body[0], file))
    ):
        return None
    test = facts.span_of(node.test, file)
    end = Span(file, test.end_line, test.end_column, test.end_line, test.end_column)
    return Edit(end, f" or {torch}.is_grad_enabled()")
