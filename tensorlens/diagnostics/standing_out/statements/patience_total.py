"""Names early stops whose patience counts all rounds without an improvement, and not those in a row."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import function_around, loop_around_line, parent_of
from tensorlens.analysis.naming.name_words import words_of_last
from tensorlens.analysis.naming.syntax import last_name, plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.best_so_far import keeps_best
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.report import Label, StandingOut

_PATIENCE = frozenset(("patience", "patient"))


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds them where a count is compared with a patience, and nothing sets it back in its scope or its class."""
    facts = training.facts
    for file, tree in facts.trees() if training.measured.steps else ():
        for choice in (node for node in ast.walk(tree) if isinstance(node, ast.If)):
            count = _counted(choice)
            if count is None or not keeps_best(facts, file, choice):
                continue
            name = plain_name(count.target)
            test = None if name is None else _limit(tree, name)
            if test is not None and not _is_set_back(facts, file, choice, count):
                yield stands_out(
                    f"`{facts.code_of(count, file)}` counts all rounds without an improvement: no line sets `{name}` "
                    f"back at an improvement, so `{ast.unparse(test)}` does not ask for such rounds in a row",
                    Label("observed_here", facts.span_of(count, file), "counted here"),
                    Label("observed_here", facts.span_of(choice, file), "an improvement sets nothing back"),
                )


def _counted(choice: ast.If) -> ast.AugAssign | None:
    """Returns the statement that adds 1 to a variable or an attribute in the `else` of an `if`."""
    for each in choice.orelse:
        if isinstance(each, ast.AugAssign) and isinstance(each.op, ast.Add) and isinstance(each.value, ast.Constant):
            return each if each.value.value == 1 and isinstance(each.target, ast.Name | ast.Attribute) else None
    return None


def _limit(tree: ast.Module, name: str) -> ast.Compare | None:
    """Returns the only comparison of a count with another number, if that is called a patience."""
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare) and name in {plain_name(each) for each in (node.left, *node.comparators)}
    ]
    sides = [plain_name(each) for node in found for each in (node.left, *node.comparators)]
    is_patience = any(_PATIENCE & set(words_of_last(each)) for each in sides if each and each != name)
    return found[0] if len(found) == 1 and is_patience else None


def _is_set_back(facts: TraceIndex, file: str, choice: ast.If, count: ast.AugAssign) -> bool:
    """Returns whether a line sets a count, other than one above the loop around, the constructor or a field."""
    function, name = function_around(facts, file, choice.lineno), last_name(count.target)
    loop = loop_around_line(facts, file, choice.lineno)
    first = choice.lineno if loop is None else loop.lineno
    for node in (node for _, tree in facts.trees() for node in ast.walk(tree)):
        if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Store):
            continue
        if last_name(node) != name or node is count.target:
            continue
        around, held = function_around(facts, file, node.lineno), parent_of(facts, file, node)
        if isinstance(count.target, ast.Attribute):
            is_field = isinstance(held, ast.AnnAssign) and isinstance(node, ast.Name)
            is_start = is_field or (around is not None and around.name == "__init__")
        else:
            is_start = around is function and node.lineno < first
        if not is_start:
            return True
    return False
