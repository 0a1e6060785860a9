"""Reports losses and other results that a program keeps, step after step, together with their graphs."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.naming.assignments import container_store, items_of, only_store_into
from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.retained_graphs import MIN_STEPS, RetainedGraphs, retained_graphs
from tensorlens.diagnostics.shared.edits.expressions import with_call
from tensorlens.diagnostics.shared.wording import finding, fix, named, with_method
from tensorlens.records.model import Call, Site
from tensorlens.records.report import Diagnostic, Edit, Label

MAX_CALLERS = 4


@dataclass(frozen=True, slots=True)
class _Holder:
    """A container that existed when the run ended, and what was kept in it."""

    name: str
    calls: tuple[Call, ...]  # the calls that made what it holds


def find_kept(facts: TraceIndex, code: str) -> Iterator[Diagnostic]:
    for group in retained_graphs(facts):
        holder = _holder(facts, group)
        if holder is not None:
            yield _report_held(facts, code, group, holder)
        elif not group.in_gradient:
            yield _report(facts, code, group)


def _report(facts: TraceIndex, code: str, group: RetainedGraphs) -> Diagnostic:
    call = group.calls[-1]
    name = named(facts, call.outputs[0].tensor, call.index)
    kept = _kept(facts, call.site, name)
    return finding(
        code,
        "warning",
        f"{group.alive} results of earlier steps are kept, each with its graph: {name}",
        _why(group),
        [kept, facts.label("graph_built_here", call.site, "makes the result and its graph")],
        fixes=(fix(_cure(name), *_detached(facts, kept, call), place=None if kept is None else kept.span),),
        evidence={"rounds": group.alive, "tensor": name},
    )


def _report_held(facts: TraceIndex, code: str, group: RetainedGraphs, holder: _Holder) -> Diagnostic:
    call = holder.calls[-1]
    name = named(facts, call.outputs[0].tensor)
    put = _put(facts, call.site, holder.name)
    return finding(
        code,
        "warning",
        f"`{holder.name}` keeps the graphs of {group.alive} earlier steps alive",
        _why(group),
        [put, facts.label("graph_built_here", call.site, "makes the result and its graph")],
        fixes=(
            fix(
                f"put the values without their graph into `{holder.name}`, `.detach()`, or a plain number, `.item()`",
                *_detached(facts, put, call),
                place=None if put is None else put.span,
            ),
        ),
        evidence={"rounds": group.alive, "tensor": name},
    )


def _detached(facts: TraceIndex, put: Label | None, call: Call) -> tuple[Edit, ...]:
    """Detaches the value that a line puts into a container: `losses.append(loss)` becomes
    `losses.append(loss.detach())`. It stays a tensor, because other lines may use it as one."""
    node = None if put is None else facts.names.syntax.node(put.span)
    if put is None or node is None or not isinstance(node, ast.expr):
        return ()
    file, number = put.span.file, call.outputs[0].tensor
    made, names = facts.span(call.site), {*facts.trace.sites[call.site].targets, facts.name(number, call.index)}
    values = list(node.args) if isinstance(node, ast.Call) and put.span != made else [node]
    found = [v for v in items_of(values) if plain_name(v) in names or facts.span_of(v, file) == made]
    edit = with_call(facts, facts.span_of(found[0], file), "detach") if len(found) == 1 else None
    return () if edit is None else (edit,)


def _why(group: RetainedGraphs) -> str:
    what = "the backward pass that needed it is over" if group.passed else "no backward pass goes through it"
    return f"a tensor keeps its graph for as long as it lives, though {what}: memory grows with every step"


def _holder(facts: TraceIndex, group: RetainedGraphs) -> _Holder | None:
    """Finds the container that held at least half of the results when the run ended."""
    names = [facts.names.script_name(call.outputs[0].tensor) or "" for call in group.calls]
    counts = Counter(outer for name in names for outer in _containers(name))
    holder = max(
        counts, key=lambda outer: (counts[outer], len(outer)), default=""
    )  # `log` and `log["loss"]`: the inner
    if counts[holder] < MIN_STEPS or 2 * counts[holder] < len(names):
        return None
    inside = (call for call, name in zip(group.calls, names, strict=True) if holder in _containers(name))
    return _Holder(holder, tuple(inside))


def _containers(name: str) -> list[str]:
    """Returns the containers in a name: `log` and `log['loss']` for `log['loss'][3]`."""
    return [name[:at] for at, character in enumerate(name) if character == "["]


def _put(facts: TraceIndex, made: int, holder: str) -> Label | None:
    """Labels the line that puts the results into the container `holder`, else the line that made them."""
    text = f"each goes into `{holder}` with its graph"
    for site in _callers(facts, made):
        span = only_store_into(facts.trace.sources.get(site.span.file, ""), site.span.file, holder)
        if span is not None:
            return Label("shared_here", span, text)
    return facts.label("shared_here", made, text)


def _kept(facts: TraceIndex, made: int, name: str) -> Label | None:
    """Labels the line that puts the result into a container, if one is found, else the line that made it."""
    for site in _callers(facts, made):
        span = container_store(facts.trace.sources.get(site.span.file, ""), site.span, (*site.targets, name.strip("`")))
        if span is not None:
            return Label("shared_here", span, "kept here with its graph")
    return facts.label("shared_here", made, "the result is kept with its graph")


def _callers(facts: TraceIndex, made: int) -> Iterator[Site]:
    """Yields a site and the sites that called it."""
    site: int | None = made
    for _ in range(MAX_CALLERS):
        if site is None:
            return
        yield facts.trace.sites[site]
        site = facts.trace.sites[site].caller


def _cure(name: str) -> str:
    return (
        f"keep the values without their graph, {with_method(name, 'detach()')}; a number, {with_method(name, 'item()')}"
    )
