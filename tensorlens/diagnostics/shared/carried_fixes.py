"""Suggests how to cut a graph that one backward pass passes on to the next: detach a state, clear a list."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from tensorlens.analysis.caller_lines import caller_lines
from tensorlens.analysis.carried import Carried, names_in_frame, names_read
from tensorlens.analysis.code_around import function_around, loop_around_line, statement_at
from tensorlens.analysis.lineage import calls_reached_by
from tensorlens.analysis.naming.bindings import root_of
from tensorlens.analysis.shared_frame import is_local, is_returned
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.detached_state import detaching, is_settable
from tensorlens.diagnostics.shared.edits.statements import inserted_after
from tensorlens.diagnostics.shared.growing_lists import cleared, is_growing
from tensorlens.diagnostics.shared.running_totals import counted_with, is_total, started_again
from tensorlens.diagnostics.shared.wording import fix
from tensorlens.records.model import Backward, Call, Failure, Span
from tensorlens.records.report import Edit, Fix

_ITEMS = re.compile(r"(.+?)((?:\[[^\[\]]+\])+)")
_TUPLES = ("torch.lstm", "torch.lstm_cell")


@dataclass(frozen=True, slots=True)
class Frame:
    """A function that was running at the failure, its line that leads to the pass, and the names of what it carries."""

    site: int
    names: tuple[str, ...]


def cut_carried(facts: TraceIndex, failure: Failure, after: Backward, found: list[Carried]) -> Fix | None:
    """Cuts all that is carried from the pass `after` into the one that failed, by the names that hold it.

    None if no function that was running at the failure has names for all of it.
    """
    frame = _frame(facts, failure, after, found)
    if frame is None or any(name in facts.names.syntax.loop_names() for name in frame.names):
        return None  # a loop gives its variable the next item, whatever is assigned to it
    span = facts.trace.sites[frame.site].span
    lists = sorted({root for name in frame.names if (root := _container(name)) and is_growing(facts, root, span)})
    if lists:
        return cleared(facts, frame.site, lists, found, failure.stack)
    if any(counted_with(facts, each) for each in found if is_total(facts, each)):
        return started_again(facts, span, frame.names, found)
    is_pair = any(each.made.op in _TUPLES for each in found)
    codes = [detaching(facts, name, frame.names, span.file, is_pair) for name in frame.names]
    lines = list(dict.fromkeys(code for code in codes if code is not None))
    roots = list(dict.fromkeys(_container(name) or name for name in frame.names))
    if None in codes:
        return None
    edit = inserted_after(facts, span.file, span.line, "\n".join(lines))
    code = "; ".join(lines)
    many = len(roots) > 1
    names = f"{', '.join(f'`{root}`' for root in roots[:-1])} and `{roots[-1]}`" if many else f"`{roots[0]}`"
    text = f"{names} {'lead' if many else 'leads'} back to the graph of the pass before: detach "
    text += f"{'them' if many else 'it'} below this line" + ("" if edit else f": `{code}`")
    return fix(text, *(edit,) if edit else (), place=span)


def _frame(facts: TraceIndex, failure: Failure, after: Backward, found: list[Carried]) -> Frame | None:
    """Finds the innermost running function that has names for all that is carried, and that repeats the pass."""
    if after.site != failure.site and facts.scope(after.site) != (
        facts.scope(failure.stack[-1]) if failure.stack else ()
    ):
        return None
    for site in reversed(failure.stack):
        span = facts.trace.sites[site].span
        names = _names(facts, found, site)
        loop = loop_around_line(facts, span.file, span.line)
        here = after.site if site == failure.stack[-1] else site
        if names and all(loop is not None or _leaves(facts, here, name) for name in names):
            return Frame(here, names)
        if loop is not None or caller_lines(facts.trace).has_callers(site):
            return None  # what repeats the pass is in here
    return None


def _leaves(facts: TraceIndex, site: int, name: str) -> bool:
    """Returns whether a later run of the function at a site gets what a name holds when this run ends."""
    return "." in name or "[" in name or is_returned(facts, site, name) or not is_local(facts, site, name)


def _names(facts: TraceIndex, found: list[Carried], site: int) -> tuple[str, ...]:
    """Returns names for all that is carried, as the function at a site has them; () if it lacks one."""
    names: list[str] = []
    for each in found:
        read = names_read(facts, each, site)
        known = [(name, old) for name, old in names_in_frame(facts, each, site) if root_of(name) in read]
        if not known:
            return ()
        names += [name for name, old in known if old] or [name for name, _ in known]
    return tuple(dict.fromkeys(names))


def _container(name: str) -> str:
    """Returns `state` of `state[0]` or `state[0][1]`; "" of a name or an attribute."""
    match = _ITEMS.fullmatch(name)
    return match[1] if match else ""


def unused_detach(facts: TraceIndex, failure: Failure, found: list[Carried]) -> Call | None:
    """Finds a `detach()` of something carried whose result nothing uses."""
    carried = {each.tensor for each in found}
    for call in facts.calls:
        if call.op == "Tensor.detach" and call.index < failure.index and call.inputs[0].tensor in carried:
            site = facts.trace.sites[call.site]
            if facts.names.syntax.is_whole_statement(site) or _rebinds_loop_variable(facts, site.span):
                return call
    return None


def _rebinds_loop_variable(facts: TraceIndex, span: Span) -> bool:
    """Returns whether a line gives a loop's variable its own new value, and the loop does not use that."""
    statement, loop = statement_at(facts, span.file, span.line), loop_around_line(facts, span.file, span.line)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if not isinstance(loop, ast.For) or not isinstance(target, ast.Name) or not isinstance(loop.target, ast.Name):
        return False
    function = function_around(facts, span.file, span.line)
    nodes = [n for n in ast.walk(function or loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
    behind = [n for n in nodes if n.id == target.id and n.lineno > (statement.end_lineno or 0)] if statement else nodes
    return function is not None and target.id == loop.target.id and not behind


def assigned_detach(facts: TraceIndex, call: Call, failed: Backward) -> Fix | None:
    """Assigns the result of a `detach()` to the name that it is called on, if the pass uses the old tensor only before
    that line or in what follows from it."""
    span = facts.trace.sites[call.site].span
    node = facts.names.syntax.node(span)
    target = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
    if not isinstance(target, ast.Name | ast.Attribute) or ast.unparse(target) in facts.names.syntax.loop_names():
        return None
    if not is_settable(facts, ast.unparse(target)):
        return None
    reached = calls_reached_by(facts, failed).calls
    last = [each for each in facts.calls if each.site == call.site and each.index < failed.index][-1]
    made = next(iter(facts.producers(last.inputs[0].tensor, last.index)), None)
    started = max((b.index for b in facts.backwards if b.index < failed.started), default=-1)
    if made is not None and made.index > started and made.index in reached:
        return None  # made in this pass: what follows would lose its gradient
    begin = Span(span.file, span.line, span.column, span.line, span.column)
    name = ast.unparse(target)
    return fix(f"assign the result, or nothing is cut: `{name} = {name}.detach()`", Edit(begin, f"{name} = "))
