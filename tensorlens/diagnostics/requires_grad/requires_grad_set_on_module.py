"""Finds the cause of `requires-grad-set-on-module`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import statement_at
from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.timeline import Training, training_of
from tensorlens.diagnostics.shared.optimizers import optimizer_name, titled
from tensorlens.diagnostics.shared.wording import finding, fix
from tensorlens.records.model import Span
from tensorlens.records.observations import FlagOnModule, Step
from tensorlens.records.report import Diagnostic, Edit

CODE = "requires-grad-set-on-module"


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    training = training_of(facts)
    reported: set[int | None] = set()
    for flag in facts.trace.inspection.flags:
        step = next((step for step in training.steps if step.index >= flag.index and _trained(step, flag)), None)
        target = _assigned(facts, facts.span(flag.site))
        if step is None or target is None or flag.site in reported or target == "self":
            continue  # a class that gives itself such an attribute may read it
        reported.add(flag.site)
        yield _report(training, flag, step, target)


def _trained(step: Step, flag: FlagOnModule) -> list[int]:
    """Lists the parameters of the module for which a step found a gradient."""
    pairs = zip(step.parameters, step.gradients, strict=True)
    return [number for number, gradient in pairs if gradient is not None and number in flag.tensors]


def _assigned(facts: TraceIndex, span: Span | None) -> str | None:
    """Returns the module that a line assigns the flag to: `net.trunk` of `net.trunk.requires_grad = False`."""
    statement = None if span is None else statement_at(facts, span.file, span.line)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target = statement.targets[0]
    is_flag = isinstance(target, ast.Attribute) and target.attr == "requires_grad"
    return plain_name(target.value) if is_flag and isinstance(target, ast.Attribute) else None


def _report(training: Training, flag: FlagOnModule, step: Step, target: str) -> Diagnostic:
    facts = training.facts
    name, names = titled(facts, _trained(step, flag))
    return finding(
        CODE,
        "warning",
        f"`{target}.requires_grad = False` froze nothing: `{optimizer_name(training, step)}.step()` trains {name}",
        "only a tensor has the flag `requires_grad`; on a module this makes a new attribute, which nothing reads",
        [
            facts.label("flag_changed_here", flag.site, f"`{target}` is a module"),
            facts.label("needed_here", step.site, "changes its parameters"),
        ],
        fixes=(fix(f"call the method: `{target}.requires_grad_(False)`", *_called(facts, flag, target),
                   place=facts.span(flag.site)),),
        evidence={"parameters": len(flag.tensors)},
        detail=names,
    )  # fmt: skip


def _called(facts: TraceIndex, flag: FlagOnModule, target: str) -> tuple[Edit, ...]:
    span = facts.span(flag.site)
    statement = None if span is None else statement_at(facts, span.file, span.line)
    if span is None or statement is None or statement.lineno != statement.end_lineno:
        return ()
    place = facts.span_of(statement, span.file)
    return (Edit(place, f"{target}.requires_grad_(False)"),)
