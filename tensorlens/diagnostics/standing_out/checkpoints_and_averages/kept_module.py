"""Names statements that keep a trained module as the best one so far, as `best = model`: it is no copy."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from tensorlens.analysis.code_around import block_around, function_around, statement_around, upwards
from tensorlens.analysis.naming.places import place_of
from tensorlens.analysis.naming.syntax import called_name, last_name, plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.best_so_far import keeps_best, stored_pairs
from tensorlens.analysis.training.checkpoints_and_averages.copies_beside import (
    COPYING,
    copies_beside,
    is_begun_anew,
    is_loaded,
)
from tensorlens.analysis.training.checkpoints_and_averages.ended_loops import may_end_loop
from tensorlens.analysis.training.checkpoints_and_averages.kept_records import kept_records
from tensorlens.analysis.training.checkpoints_and_averages.steps_after_keeping import step_after
from tensorlens.analysis.training.checkpoints_and_averages.used_at_once import is_used_at_once
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.two_names import modules_in
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.observations import Step
from tensorlens.records.report import Label, StandingOut

_Loop = ast.For | ast.While


@dataclass(frozen=True, slots=True)
class _Same:
    name: str  # of what is kept
    parameters: frozenset[int]  # of the module


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds such statements below an `if` of a loop, or below one that compares what is so far the best.

    Both names mean one module at the end, and steps followed. A loop that makes the module itself compares several. A
    name that only the lines below it read, as `layer = net.head` does before `print(layer.bias)`, keeps nothing.
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
                places = _places(facts, file, choice, None if choice in inner else around, loops)
                for statement in choice.body:
                    if is_best or (choice in inner and _is_whole(statement)):
                        yield from _kept(training, statement, file, made, places)


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


def _places(
    facts: TraceIndex, file: str, choice: ast.If, function: ast.AST | None, loops: list[_Loop]
) -> list[tuple[_Loop, ast.stmt]]:
    """Returns the loops around an `if`, or around the calls of its function, each with the statement in it."""
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        around = [each for each in upwards(facts, file, choice) if isinstance(each, _Loop)]
        used = [around[0], *(each for each in around[1:] if not may_end_loop(facts, file, choice, [each], True))]
        return [(each, choice) for each in used]
    found: list[tuple[_Loop, ast.stmt]] = []
    for loop in loops:
        calls = (node for node in ast.walk(loop) if called_name(node) == function.name)
        statements = (statement_around(facts, facts.span_of(call, file)) for call in calls)
        found += [(loop, each) for each in statements if each is not None]
    return found


def _step(training: MeasuredTraining, file: str, at: tuple[_Loop, ast.stmt], kept: str, same: _Same) -> Step | None:
    """Returns a step that changes a module after a loop has kept it."""
    facts, (loop, statement) = training.facts, at
    if is_begun_anew(facts, file, loop, kept, statement) or is_loaded(facts.tree(file), [kept]):
        return None
    return step_after(facts, file, loop, statement, training.training.steps, same.parameters)


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
    return any(called_name(node) in COPYING for each in choice.body for node in ast.walk(each))


def _kept(
    training: MeasuredTraining,
    statement: ast.stmt,
    file: str,
    made: set[str | None],
    places: list[tuple[_Loop, ast.stmt]],
) -> Iterator[StandingOut]:
    facts = training.facts
    for target, value in stored_pairs(statement):
        kept = plain_name(target)
        parts = {plain_name(each): each for each in ast.walk(value) if isinstance(each, ast.Name | ast.Attribute)}
        for module, part in parts.items():
            if not kept or not module or module in {*made, kept, "self"}:
                continue
            modules = modules_in(facts, _function(facts, statement, file), training.training.stepped)
            same = _name_of_same(modules, kept, module, part is value)
            steps = (_step(training, file, at, kept, same) for at in places if same is not None)
            step = next((each for each in steps if each is not None), None)
            keeps = partial(_keeps, modules, module)
            if same is not None and step is not None and not is_used_at_once(facts, file, statement, target, keeps):
                yield _sentence(facts, statement, file, same.name, module, step)
                break


def _in_records(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Yields the sentences about records that a loop keeps if they are better than the one so far."""
    facts, reported = training.facts, set[ast.AST]()
    for each in kept_records(facts):
        if each.made in reported or each.module in {*_made_by(each.loop, facts.tree(each.file)), *each.kept, "self"}:
            continue
        modules = modules_in(facts, _function(facts, each.statement, each.file), training.training.stepped)
        if copies_beside(facts, each.file, each.loop, {each.module, *each.kept}):
            continue
        for kept in each.kept:
            same = _name_of_same(modules, kept, each.module, False)
            step = None if same is None else _step(training, each.file, (each.loop, each.statement), kept, same)
            if same is not None and step is not None and each.made not in reported:
                reported.add(each.made)
                yield _sentence(facts, each.made, each.file, same.name, each.module, step)


def _sentence(facts: TraceIndex, made: ast.AST, file: str, name: str, module: str, step: Step) -> StandingOut:
    return stands_out(
        f"`{facts.code_of(made, file)}` keeps no copy: `{name}` and `{module}` are one module, and "
        "later steps change it",
        Label("shared_here", facts.span_of(made, file), "two names for one module from here on"),
        facts.label("modified_here", step.site, "changes both"),
    )


def _bound(node: ast.AST) -> list[ast.expr]:
    """Returns what a statement assigns to, or what a loop goes through."""
    if isinstance(node, ast.For):
        return [node.target, *(node.target.elts if isinstance(node.target, ast.Tuple) else [])]
    return [target for target, _ in stored_pairs(node)] if isinstance(node, ast.Assign) else []


def _keeps(modules: dict[str, dict[str, int]], module: str, name: str) -> bool:
    return _name_of_same(modules, name, module, False) is not None


def _name_of_same(modules: dict[str, dict[str, int]], kept: str, module: str, is_whole: bool) -> _Same | None:
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
                shown = f"self{name.removeprefix(owner)}" if owner else name
                return _Same(shown, frozenset(modules[other].values()))
    return None


def _function(facts: TraceIndex, statement: ast.stmt, file: str) -> str:
    """Returns the name that the trace has for the function around a statement."""
    around = function_around(facts, file, statement.lineno)
    for site in facts.trace.sites:
        if site.span.file == file and function_around(facts, file, site.span.line) is around:
            return place_of(site)[1]
    return "<module>"
