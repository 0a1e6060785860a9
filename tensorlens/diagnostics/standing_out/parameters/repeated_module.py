"""Names lists and dicts that repeat one module, as `[make_layer()] * 4` does, and modules that are the default of an
argument or a field."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from tensorlens.analysis.code_around import class_around
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.analysis.training.parameters.default_values import DefaultValue, default_values, is_taken_often
from tensorlens.analysis.written_numbers import written_number
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.records.model import Call, Span
from tensorlens.records.report import Label, StandingOut
from tensorlens.records.source import line_at, one_line

_SHARED = re.compile(r"shar(e|es|ed|ing)|tied|tying|one for all|albert|universal.?transformer", re.IGNORECASE)
_PASSES = 4  # of the last ones, whose calls are counted


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds products of a number and a list that a call fills, if the call made parameters that steps use gradients of.

    `[layer] * 4` with a variable may share the layer on purpose, and so does a program that says so.
    """
    facts = training.facts
    yield from _defaults(training)
    for file, tree in facts.trees():
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


def _defaults(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds a module in the place of a default value, of a class or function that is called without it repeatedly."""
    facts = training.facts
    for each in default_values(facts):
        span = facts.span_of(each.value, each.file)
        rows = _made_by(training, span)
        is_meant = _is_said(facts, each.file, facts.tree(each.file), each.value) or _is_read(facts, each)
        if any(_is_used_again(facts, row.tensor) for row in rows) and is_taken_often(facts, each) and not (
            is_meant or _runs_in_training(facts, each)
        ):  # fmt: skip
            what, rest = "function", "call of "
            if isinstance(each.holder, ast.ClassDef):
                what, rest = "class", ""
            value = one_line(facts.code_of(each.value, each.file), 40)
            yield stands_out(
                f"the default value `{value}` is made once, with the {what}: each "
                f"{rest}`{each.holder.name}` that gets no other one has {listed(rows)}",
                Label("shared_here", span, "one result for all"),
            )


def _is_used_again(facts: TraceIndex, number: int) -> bool:
    """Returns whether one operation uses a parameter several times for each of the last backward passes."""
    passes = [each.index for each in facts.backwards if each.site == facts.backwards[-1].site][-_PASSES:]
    counts = [
        Counter(call.op for call in facts.calls_between(first + 1, last) if _uses(call, number))
        for first, last in pairwise(passes)
    ]
    return bool(counts) and min(max(each.values(), default=0) for each in counts) > 1


def _uses(call: Call, number: int) -> bool:
    return call.mode == "grad" and not call.within and any(access.tensor == number for access in call.inputs)


def _is_read(facts: TraceIndex, default: DefaultValue) -> bool:
    """Returns whether the program reads the value of a class itself, as `Task.encoder`: it is shared on purpose."""
    wanted = f"{default.holder.name}.{default.argument}"
    nodes = (node for _, tree in facts.trees() for node in ast.walk(tree))
    return any(isinstance(node, ast.Attribute) and ast.unparse(node) == wanted for node in nodes)


def _runs_in_training(facts: TraceIndex, default: DefaultValue) -> bool:
    """Returns whether a function runs after the first backward pass: it may keep its default value on purpose."""
    if isinstance(default.holder, ast.ClassDef) or not facts.backwards:
        return False
    span = facts.span_of(default.holder, default.file)
    later = {call.site for call in facts.calls_between(facts.backwards[0].index)}
    return any(_is_in(facts.trace.sites[each].span, span) for site in later for each in facts.call_chain(site))


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
