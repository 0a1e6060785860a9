"""Names lists and dicts that repeat one module, as `[make_layer()] * 4` does, and modules that are the default of an
argument."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensorlens.analysis.code_around import class_around, method_of
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.analysis.written_numbers import written_number
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.records.model import Span
from tensorlens.records.report import Label, StandingOut
from tensorlens.records.source import line_at

_SHARED = re.compile(r"shar(e|es|ed|ing)|tied|tying", re.IGNORECASE)


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds products of a number and a list that a call fills, if the call made parameters that steps use gradients of.

    `[layer] * 4` with a variable may share the layer on purpose, and so does a program that says so.
    """
    facts = training.facts
    for file, tree in facts.trees():
        yield from _defaults(training, file, tree)
        for node in ast.walk(tree):
            found = _repeated(facts, node)
            if found is None or not isinstance(node, ast.expr) or _is_said(facts, file, tree, node):
                continue
            rows = _made_by(training, facts.span_of(found, file))
            if isinstance(node, ast.Call):  # the result may be something else than the module
                rows = [row for row in rows if _is_used_outside(training, row, facts.span_of(found, file))]
            if rows:
                yield stands_out(
                    f"`{facts.code_of(node, file)}` repeats the result of one call: "
                    f"`{facts.code_of(found.func, file)}()` makes {listed(rows)}",
                    Label("shared_here", facts.span_of(node, file), "one result, repeated"),
                )


def _defaults(training: MeasuredTraining, file: str, tree: ast.Module) -> Iterator[StandingOut]:
    """Finds a module in the place of a default value of `__init__`, of a class that is made more than once."""
    facts = training.facts
    for holder in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        for name, place, value in _default_values(method_of(holder, "__init__")):
            rows = _made_by(training, facts.span_of(value, file)) if isinstance(value, ast.Call) else []
            if rows and _is_made_often(tree, holder.name, name, place):
                yield stands_out(
                    f"the default value `{facts.code_of(value, file)}` is made once, with the class: each "
                    f"`{holder.name}` that gets no other one has {listed(rows)}",
                    Label("shared_here", facts.span_of(value, file), "one result for all"),
                )


def _default_values(init: ast.FunctionDef | None) -> Iterator[tuple[str, int | None, ast.expr]]:
    """Yields the name of each argument with a default value, its place after `self`, and the value."""
    if init is None:
        return
    given = [*init.args.posonlyargs, *init.args.args]
    first = len(given) - len(init.args.defaults)
    for place, value in enumerate(init.args.defaults, first):
        yield given[place].arg, place - 1, value
    for argument, only in zip(init.args.kwonlyargs, init.args.kw_defaults, strict=True):
        if only is not None:
            yield argument.arg, None, only


def _is_made_often(tree: ast.Module, name: str, argument: str, place: int | None) -> bool:
    """Returns whether a file makes objects of a class without an argument in several places, or in a loop."""
    loops = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and getattr(node.func, "id", "") == name]
    places = [node for node in calls if not _gives(node, argument, place)]
    inside = {id(each) for loop in ast.walk(tree) if isinstance(loop, loops) for each in ast.walk(loop)}
    return len(places) > 1 or any(id(node) in inside for node in places)


def _gives(call: ast.Call, argument: str, place: int | None) -> bool:
    """Returns whether a call gives an argument, or may do so by `*` or `**`."""
    if any(isinstance(each, ast.Starred) for each in call.args) or None in [each.arg for each in call.keywords]:
        return True
    return argument in [each.arg for each in call.keywords] or (place is not None and len(call.args) > place)


def _repeated(facts: TraceIndex, node: ast.AST) -> ast.Call | None:
    """Returns the call in `[call()] * number` and in `dict.fromkeys(names, call())`; None if the number is below 2."""
    if isinstance(node, ast.Call):
        return _given_to_all(node)
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return None
    for items, times in ((node.left, node.right), (node.right, node.left)):
        if isinstance(items, ast.List) and len(items.elts) == 1 and isinstance(items.elts[0], ast.Call):
            return items.elts[0] if _is_several(facts, times) else None
    return None


def _is_said(facts: TraceIndex, file: str, tree: ast.Module, node: ast.expr) -> bool:
    """Returns whether the script says that parts are shared: in the line or the one above it, in the name or docstring
    of the class, or in the docstring of the file."""
    holder = class_around(facts, file, node.lineno)
    lines = [line_at(facts.trace.sources.get(file, ""), line) for line in (node.lineno - 1, node.lineno)]
    texts = [*lines, ast.get_docstring(tree) or ""]
    texts += [holder.name, ast.get_docstring(holder) or ""] if holder is not None else []
    return any(_SHARED.search(text) for text in texts)


def _is_several(facts: TraceIndex, times: ast.expr) -> bool:
    """Returns whether a number of times is more than 1, or not known."""
    number = written_number(facts, times)
    return number is None or number > 1


def _given_to_all(node: ast.Call) -> ast.Call | None:
    """Returns the call whose result `dict.fromkeys()` gives to each key."""
    is_fromkeys = isinstance(node.func, ast.Attribute) and node.func.attr == "fromkeys" and len(node.args) == 2
    keys, value = node.args if is_fromkeys else (None, None)
    is_one = isinstance(keys, ast.List | ast.Tuple | ast.Set) and len(keys.elts) == 1
    return value if isinstance(value, ast.Call) and not is_one else None


def _made_by(training: MeasuredTraining, span: Span) -> list[ParameterRow]:
    """Returns the parameters with gradients that a call of the source made and that an optimizer steps."""
    facts, rows = training.facts, []
    for row in training.rows:
        made = facts.creator(row.tensor)
        if made is None or not row.is_stepped or row.statistics is None or not row.statistics.filled:
            continue
        spans = [facts.trace.sites[site].span for site in facts.call_chain(made.site)]
        if any(_is_in(each, span) for each in spans):
            rows.append(row)
    return rows


def _is_used_outside(training: MeasuredTraining, row: ParameterRow, span: Span) -> bool:
    """Returns whether a call that is not part of an expression of the source uses a parameter."""
    facts = training.facts
    used = (call.site for call in facts.calls if any(access.tensor == row.tensor for access in call.inputs))
    return any(
        not any(_is_in(facts.trace.sites[each].span, span) for each in facts.call_chain(site)) for site in set(used)
    )


def _is_in(one: Span, other: Span) -> bool:
    begins = (other.line, other.column) <= (one.line, one.column)
    return one.file == other.file and begins and (one.end_line, one.end_column) <= (other.end_line, other.end_column)
