"""Names statements that keep a trained module as the best one so far, as `best = model`: it is no copy."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import block_around, function_around
from tensorlens.analysis.naming.places import place_of
from tensorlens.analysis.naming.syntax import called_name, last_name, plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.best_so_far import keeps_best, stored_pairs
from tensorlens.analysis.training.ended_loops import may_end_loop
from tensorlens.analysis.training.kept_records import kept_records
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.two_names import modules_in
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.report import Label, StandingOut

_COPYING = ("deepcopy", "copy", "clone", "state_dict", "save")


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds such statements below an `if` of a loop, or below one that compares what is so far the best.

    Both names mean one module at the end, and steps followed. A loop that makes the module itself compares several.
    """
    facts = training.facts
    if training.training.is_hidden or not training.training.steps:
        return
    yield from _in_records(training)
    for file, tree in facts.trees():
        loops = [node for node in ast.walk(tree) if isinstance(node, ast.For | ast.While)]
        inner = {node: loop for loop in loops for node in ast.walk(loop) if isinstance(node, ast.If)}
        for choice in (node for node in ast.walk(tree) if isinstance(node, ast.If)):
            around = inner.get(choice) or _called_by(facts, file, choice, loops)
            if around is not None and not _copies(choice) and not _is_of_two(facts, file, choice):
                if may_end_loop(facts, file, choice, _loops(around, loops), choice in inner):
                    continue  # no step follows
                made, is_best = _made_by(around, tree), keeps_best(facts, file, choice)
                for statement in choice.body:
                    if is_best or (choice in inner and _is_whole(statement)):
                        yield from _kept(training, statement, file, made)


def _called_by(facts: TraceIndex, file: str, choice: ast.If, loops: list[ast.For | ast.While]) -> ast.AST | None:
    """Returns the function around an `if`, if a loop calls it."""
    around = function_around(facts, file, choice.lineno)
    calls = (node for loop in loops for node in ast.walk(loop) if isinstance(node, ast.Call))
    return around if around is not None and any(last_name(call.func) == around.name for call in calls) else None


def _loops(around: ast.AST, loops: list[ast.For | ast.While]) -> list[ast.For | ast.While]:
    """Returns the loop itself, or those that call a function."""
    if not isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef):
        return [loop for loop in loops if loop is around]
    return [loop for loop in loops if any(called_name(node) == around.name for node in ast.walk(loop))]


def _made_by(around: ast.AST, tree: ast.Module) -> set[str | None]:
    """Returns the names that a loop or a function sets, and the attributes that methods set which make no object."""
    methods = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name != "__init__"]
    inside = (node for method in methods for node in ast.walk(method))
    attributes = {plain_name(target) for node in inside for target in _bound(node) if isinstance(target, ast.Attribute)}
    return {plain_name(target) for node in ast.walk(around) for target in _bound(node)} | attributes


def _is_of_two(facts: TraceIndex, file: str, choice: ast.If) -> bool:
    """Returns whether the `else` of an `if`, or a line before it in its block, gives one of the same names another
    value, so that the name means one of several live modules."""
    block = block_around(facts, file, choice)
    before = block[: next((place for place, each in enumerate(block) if each is choice), 0)]
    started = {
        plain_name(target)
        for each in before
        for target, value in stored_pairs(each)
        if isinstance(value, ast.Name | ast.Attribute) and last_name(value) != last_name(target)
    }
    stored = [
        {plain_name(target) for each in body for node in ast.walk(each) for target, _ in stored_pairs(node)} - {None}
        for body in (choice.body, choice.orelse)
    ]
    return bool(stored[0] & (stored[1] | started))


def _is_whole(statement: ast.stmt) -> bool:
    """Returns whether a statement gives names and attributes a module itself: a collection may be one of live modules,
    unless its `if` compares what is the best so far."""
    named = ast.Name | ast.Attribute
    pairs = list(stored_pairs(statement))
    return all(isinstance(target, named) and isinstance(value, named) for target, value in pairs)


def _copies(choice: ast.If) -> bool:
    """Returns whether a statement below an `if` copies or saves anything."""
    calls = (node for each in choice.body for node in ast.walk(each) if isinstance(node, ast.Call))
    return any(last_name(node.func) in _COPYING for node in calls)


def _kept(training: MeasuredTraining, statement: ast.stmt, file: str, made: set[str | None]) -> Iterator[StandingOut]:
    facts = training.facts
    for target, value in stored_pairs(statement):
        kept = plain_name(target)
        parts = {plain_name(each): each for each in ast.walk(value) if isinstance(each, ast.Name | ast.Attribute)}
        for module, part in parts.items():
            if not kept or not module or module in {*made, kept, "self"}:
                continue
            modules = modules_in(facts, _function(facts, statement, file), training.training.stepped)
            name = _name_of_same(modules, kept, module, part is value)
            if name is not None:
                yield _sentence(training, statement, file, name, module)
                break


def _in_records(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Yields the sentences about records that a loop keeps if they are better than the one so far."""
    facts, reported = training.facts, set[ast.AST]()
    for each in kept_records(facts):
        if each.made in reported or each.module in {*_made_by(each.loop, facts.tree(each.file)), *each.kept, "self"}:
            continue
        modules = modules_in(facts, _function(facts, each.statement, each.file), training.training.stepped)
        found = (_name_of_same(modules, kept, each.module, False) for kept in each.kept)
        name = next((name for name in found if name is not None), None)
        if name is not None:
            reported.add(each.made)
            yield _sentence(training, each.made, each.file, name, each.module)


def _sentence(training: MeasuredTraining, made: ast.AST, file: str, name: str, module: str) -> StandingOut:
    facts = training.facts
    return stands_out(
        f"`{facts.code_of(made, file)}` keeps no copy: `{name}` and `{module}` are one module, and "
        "later steps change it",
        Label("shared_here", facts.span_of(made, file), "two names for one module from here on"),
        facts.label("modified_here", training.training.steps[-1].site, "changes both"),
    )


def _bound(node: ast.AST) -> list[ast.expr]:
    """Returns what a statement assigns to, or what a loop goes through."""
    if isinstance(node, ast.For):
        return [node.target, *(node.target.elts if isinstance(node.target, ast.Tuple) else [])]
    return [target for target, _ in stored_pairs(node)] if isinstance(node, ast.Assign) else []


def _name_of_same(modules: dict[str, dict[str, int]], kept: str, module: str, is_whole: bool) -> str | None:
    """Returns the name by which what is kept is, or contains, the same module, also as attributes of one object."""
    pairs = [(kept, module, "")]
    _, is_own, attribute = module.rpartition("self.")
    if is_own and kept.startswith("self."):
        owners = [name.removesuffix(f".{attribute}") for name in modules if name.endswith(f".{attribute}")]
        pairs += [(f"{owner}.{kept.removeprefix('self.')}", f"{owner}.{attribute}", owner) for owner in owners]
    for one, other, owner in pairs:
        inside = (name for name in modules if name.startswith((f"{one}.", f"{one}[")) and not is_whole)
        for name in (one, *inside):
            if other in modules and modules[other] == modules.get(name):
                return f"self{name.removeprefix(owner)}" if owner else name
    return None


def _function(facts: TraceIndex, statement: ast.stmt, file: str) -> str:
    """Returns the name that the trace has for the function around a statement."""
    around = function_around(facts, file, statement.lineno)
    for site in facts.trace.sites:
        if site.span.file == file and function_around(facts, file, site.span.line) is around:
            return place_of(site)[1]
    return "<module>"
