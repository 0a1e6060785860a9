"""Reports losses and other results that a program keeps, step after step, together with their graphs."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.lineage import backward_reaches
from tensorlens.analysis.naming.assignments import items_of, only_store_into
from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.kept_lines import Store, store_of
from tensorlens.analysis.training.retained_graphs import MIN_STEPS, RetainedGraphs, retained_graphs
from tensorlens.diagnostics.shared.edits.expressions import with_call
from tensorlens.diagnostics.shared.wording import finding, fix, named, with_method
from tensorlens.records.model import Call, Site, Span
from tensorlens.records.report import Diagnostic, Edit, Fix, Label

MAX_CALLERS = 4
MAX_RUNS = 3  # of a line, before a backward pass that may go through them


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
    store = store_of(facts, call, name.strip("`"))
    if store is None:
        kept = facts.label("shared_here", call.site, "the result is kept with its graph")
    else:
        kept = Label("shared_here", store.span, "kept here with its graph")
    return finding(
        code,
        "warning",
        f"{group.alive} results of earlier steps are kept, each with its graph: {name}",
        _why(group),
        [kept, facts.label("graph_built_here", call.site, "makes the result and its graph")],
        fixes=(_fix(facts, group, call, store, None if kept is None else kept.span, _cure(name)),),
        evidence={"rounds": group.alive, "tensor": name},
    )


def _report_held(facts: TraceIndex, code: str, group: RetainedGraphs, holder: _Holder) -> Diagnostic:
    call = holder.calls[-1]
    name = named(facts, call.outputs[0].tensor)
    store = store_of(facts, call, named(facts, call.outputs[0].tensor, call.index).strip("`"))
    text = f"each goes into `{holder.name}` with its graph"
    span = _put(facts, call.site, holder.name) or (None if store is None else store.span)
    put = facts.label("shared_here", call.site, text) if span is None else Label("shared_here", span, text)
    cure = f"put the values without their graph into `{holder.name}`, `.detach()`, or a plain number, `.item()`"
    return finding(
        code,
        "warning",
        f"`{holder.name}` keeps the graphs of {group.alive} earlier steps alive",
        _why(group),
        [put, facts.label("graph_built_here", call.site, "makes the result and its graph")],
        fixes=(_fix(facts, group, call, store, None if put is None else put.span, cure),),
        evidence={"rounds": group.alive, "tensor": name},
    )


def _fix(facts: TraceIndex, group: RetainedGraphs, call: Call, store: Store | None, put: Span | None, cure: str) -> Fix:
    """Offers to detach a value where it is kept, or where it is given to the function that keeps it."""
    if put is not None and store is not None and put == store.span:
        edit = None if store.value is None else with_call(facts, store.value, "detach")
        return fix(cure, *(() if edit is None else (edit,)), place=store.given)
    if put == facts.span(call.site) and (group.passed or _is_needed(facts, call)):
        return fix(f"{cure}, where they are kept: a backward pass needs the graph that this line makes")
    return fix(cure, *_detached(facts, put, call), place=put)


def _is_needed(facts: TraceIndex, call: Call) -> bool:
    """Returns whether backward passes go through other runs of the line of a call."""
    runs = [each for each in facts.calls if each.mode == "grad" and facts.same_line(each.site, call.site)]
    for backward in (facts.backwards[:1] + facts.backwards[-1:]) if runs else ():
        before = [each for each in runs if each.index < backward.index]
        if any(backward_reaches(facts, backward, each) for each in before[-MAX_RUNS:]):
            return True
    return False


def _detached(facts: TraceIndex, put: Span | None, call: Call) -> tuple[Edit, ...]:
    """Detaches the value that a line puts into a container: `losses.append(loss)` becomes
    `losses.append(loss.detach())`. It stays a tensor, because other lines may use it as one."""
    node = None if put is None else facts.names.syntax.node(put)
    if put is None or node is None or not isinstance(node, ast.expr):
        return ()
    number, made = call.outputs[0].tensor, facts.span(call.site)
    of_value = {*facts.trace.sites[call.site].targets, facts.name(number, call.index)}
    values = [node]
    if isinstance(node, ast.Call) and put != made:
        values = [*node.args, *(keyword.value for keyword in node.keywords)]
    found = [v for v in items_of(values) if plain_name(v) in of_value or facts.span_of(v, put.file) == made]
    edit = with_call(facts, facts.span_of(found[0], put.file), "detach") if len(found) == 1 else None
    return () if edit is None else (edit,)


def _why(group: RetainedGraphs) -> str:
    what = "the backward pass that needed it is over" if group.passed else "no backward pass goes through it"
    grows = "memory grows with every step"
    if 2 * group.alive < len(group.calls):  # the others were dropped, as by `deque(maxlen=8)`
        grows = f"memory holds {group.alive} graphs of earlier steps at once"
    return f"a tensor keeps its graph for as long as it lives, though {what}: {grows}"


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


def _put(facts: TraceIndex, made: int, holder: str) -> Span | None:
    """Finds the only expression that puts something into the container `holder`, also as an attribute of `self`."""
    own = f"self.{holder.rpartition('.')[2]}" if "." in holder else ""
    for target in filter(None, (holder, own)):
        for site in _callers(facts, made):
            span = only_store_into(facts.trace.sources.get(site.span.file, ""), site.span.file, target)
            if span is not None:
                return span
    return None


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
