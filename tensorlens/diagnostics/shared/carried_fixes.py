"""Suggests how to cut a graph that one backward pass passes on to the next: detach a state, clear a list."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.caller_lines import caller_lines
from tensorlens.analysis.carried import Carried, names_in_frame, names_read
from tensorlens.analysis.code_around import function_around, loop_around_line, statement_at
from tensorlens.analysis.lineage import calls_reached_by
from tensorlens.analysis.naming.bindings import root_of
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.shared_frame import is_local, is_returned
from tensorlens.analysis.trace_index import TraceIndex
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
    if frame is None:
        return None
    span = facts.trace.sites[frame.site].span
    lists = sorted({root for name in frame.names if (root := _container(name)) and is_growing(facts, root, span)})
    if lists:
        return cleared(facts, frame.site, lists, found, failure.stack)
    if any(counted_with(facts, each) for each in found if is_total(facts, each)):
        return started_again(facts, span, frame.names, found)
    lines = list(dict.fromkeys(line for name in frame.names if (line := detaching(facts, name, found))))
    roots = list(dict.fromkeys(_container(name) or name for name in frame.names))
    if len(lines) != len(roots):
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


def detaching(facts: TraceIndex, name: str, found: list[Carried]) -> str:
    """Writes the statement that detaches what a name holds; for `state[0]`, the whole tuple, list or dict.

    "" for an item of an item.
    """
    match = _ITEMS.fullmatch(name)
    if match is None:
        return f"{name} = {name}.detach()"
    whole, steps = match[1], re.findall(r"\[([^\[\]]+)\]", match[2])
    if len(steps) != 1:
        return ""
    if not steps[0].isdigit():
        return f"{whole} = {{k: v.detach() for k, v in {whole}.items()}}"
    if any(each.made.op in _TUPLES for each in found):
        return f"{whole} = tuple(t.detach() for t in {whole})"
    kinds = {type(value) for value in _assigned(facts, whole)}
    if kinds and kinds <= {ast.List, ast.ListComp}:
        return f"{whole} = [t.detach() for t in {whole}]"
    if kinds == {ast.Tuple}:
        return f"{whole} = tuple(t.detach() for t in {whole})"
    return f"{whole} = type({whole})(t.detach() for t in {whole})"


def _assigned(facts: TraceIndex, name: str) -> Iterator[ast.expr]:
    """Yields the lists and tuples that are written out where a name or attribute gets its value."""
    last = name.rpartition(".")[2]
    for _, tree in facts.trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.List | ast.ListComp | ast.Tuple):
                if any(isinstance(t, ast.Name | ast.Attribute) and last_name(t) == last for t in node.targets):
                    yield node.value


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
    reached = calls_reached_by(facts, failed).calls
    last = [each for each in facts.calls if each.site == call.site and each.index < failed.index][-1]
    made = next(iter(facts.producers(last.inputs[0].tensor, last.index)), None)
    started = max((b.index for b in facts.backwards if b.index < failed.started), default=-1)
    if made is not None and made.index > started and made.index in reached:
        return None  # made in this pass: what follows would lose its gradient
    begin = Span(span.file, span.line, span.column, span.line, span.column)
    name = ast.unparse(target)
    return fix(f"assign the result, or nothing is cut: `{name} = {name}.detach()`", Edit(begin, f"{name} = "))
