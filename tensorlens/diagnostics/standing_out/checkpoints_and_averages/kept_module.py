"""Names statements that keep a trained module as the best one so far, as `best = model`: it is no copy."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import function_around
from tensorlens.analysis.naming.places import place_of
from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.two_names import modules_in
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.report import Label, StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds such statements below an `if` of a loop, if both names mean one module at the end and steps followed."""
    facts = training.facts
    if training.training.is_hidden or not training.training.steps:
        return
    for file, tree in facts.trees():
        for loop in (node for node in ast.walk(tree) if isinstance(node, ast.For | ast.While)):
            for choice in (node for node in ast.walk(loop) if isinstance(node, ast.If)):
                for statement in choice.body:
                    yield from _kept(training, statement, file)


def _kept(training: MeasuredTraining, statement: ast.stmt, file: str) -> Iterator[StandingOut]:
    facts = training.facts
    for target, value in _pairs(statement):
        kept, module = plain_name(target), plain_name(value)
        modules = modules_in(facts, _function(facts, statement, file), training.training.stepped)
        if kept and module and kept != module and _are_one(modules, kept, module):
            yield stands_out(
                f"`{facts.code_of(statement, file)}` keeps no copy: `{kept}` and `{module}` are one module, and later "
                "steps change it",
                Label("shared_here", facts.span_of(statement, file), "two names for one module from here on"),
                facts.label("modified_here", training.training.steps[-1].site, "changes both"),
            )


def _are_one(modules: dict[str, dict[str, int]], one: str, other: str) -> bool:
    """Returns whether two names mean modules with the same parameters, also as attributes of one object."""
    if other in modules and modules[other] == modules.get(one):
        return True
    _, is_own, attribute = other.rpartition("self.")
    owners = (name.removesuffix(f".{attribute}") for name in modules if is_own and name.endswith(f".{attribute}"))
    kept = one.removeprefix("self.")
    return one.startswith("self.") and any(
        modules[f"{owner}.{attribute}"] == modules.get(f"{owner}.{kept}") for owner in owners
    )


def _pairs(statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yields what a statement assigns to what, also `best, low = model, loss`."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target, value = statement.targets[0], statement.value
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            yield from zip(target.elts, value.elts, strict=True)
        else:
            yield target, value


def _function(facts: TraceIndex, statement: ast.stmt, file: str) -> str:
    """Returns the name that the trace has for the function around a statement."""
    around = function_around(facts, file, statement.lineno)
    for site in facts.trace.sites:
        if site.span.file == file and function_around(facts, file, site.span.line) is around:
            return place_of(site)[1]
    return "<module>"
