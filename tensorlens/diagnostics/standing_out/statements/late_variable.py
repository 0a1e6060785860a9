"""Names hooks and learning-rate functions that a loop makes and that read its variable, when it has its last value."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import is_inside
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.report import Label, StandingOut

_HOOKS = frozenset(
    "register_hook register_forward_hook register_forward_pre_hook register_full_backward_hook "
    "register_full_backward_pre_hook register_post_accumulate_grad_hook".split()
)
_SCHEDULES = frozenset(("LambdaLR", "MultiplicativeLR"))
_Made = ast.Lambda | ast.FunctionDef
_Loop = ast.For | ast.ListComp | ast.GeneratorExp | ast.DictComp


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if not training.measured.passes:
        return
    for file, tree in facts.trees():
        for loop in (node for node in ast.walk(tree) if isinstance(node, _Loop)):
            if isinstance(loop, ast.For) and _runs_inside(facts, file, loop):
                continue
            for made, taker in _made_in(facts, file, loop, tree):
                for name in sorted(_variables(loop) & _free(made)):
                    what = "each of its hooks" if taker in _HOOKS else "each of its functions"
                    yield stands_out(
                        f"the loop has ended when {what} runs: `{name}` then has its last value in all of them",
                        Label("function_defined_here", facts.span_of(made, file), f"uses `{name}` when it runs"),
                    )
                    break


def _runs_inside(facts: TraceIndex, file: str, loop: ast.For) -> bool:
    """Returns whether the loop itself runs backward passes or steps: hooks then run while it goes on."""
    around = facts.span_of(loop, file)
    sites = {each.site for each in facts.backwards}
    return any((span := facts.span(site)) is not None and is_inside(span, around) for site in sites)


def _made_in(facts: TraceIndex, file: str, loop: _Loop, tree: ast.Module) -> Iterator[tuple[_Made, str]]:
    """Yields the functions that a loop makes and gives to PyTorch, each with the name of what takes it. The trace shows
    that hooks were registered there several times, and that they have run."""
    given = {id(each): call for call in ast.walk(loop) if isinstance(call, ast.Call) for each in call.args}
    named = {each.id: call for call in ast.walk(loop) if isinstance(call, ast.Call) for each in call.args
             if isinstance(each, ast.Name)}  # fmt: skip
    for node in ast.walk(loop):
        taker = None
        if isinstance(node, ast.Lambda):
            taker = given.get(id(node))
        elif isinstance(node, ast.FunctionDef) and isinstance(loop, ast.For) and node in loop.body:
            taker = named.get(node.name)
        if taker is not None and _called(taker) in _HOOKS and isinstance(node, _Made):
            if _is_registered(facts, file, taker):
                yield node, _called(taker)
    if isinstance(loop, ast.ListComp) and isinstance(loop.elt, ast.Lambda):
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call) and _called(node) in _SCHEDULES):
            if any(loop is part for part in ast.walk(call)):
                yield loop.elt, _called(call)


def _is_registered(facts: TraceIndex, file: str, taker: ast.Call) -> bool:
    around = facts.span_of(taker, file)
    callbacks = facts.trace.callbacks
    found = [each for each in callbacks.registrations if (s := facts.span(each.site)) is not None and s == around]
    return len(found) > 1 and len({each.target for each in found}) > 1


def _variables(loop: _Loop) -> set[str]:
    targets = [loop.target] if isinstance(loop, ast.For) else [each.target for each in loop.generators]
    return {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}


def _free(made: _Made) -> set[str]:
    """Returns the names that a function reads when it runs, and that are none of its own."""
    own = {each.arg for node in ast.walk(made) if isinstance(node, ast.arguments) for each in _arguments(node)}
    body = [made.body] if isinstance(made, ast.Lambda) else made.body
    names = [node for each in body for node in ast.walk(each) if isinstance(node, ast.Name)]
    own |= {node.id for node in names if isinstance(node.ctx, ast.Store)}
    return {node.id for node in names if isinstance(node.ctx, ast.Load)} - own


def _arguments(arguments: ast.arguments) -> list[ast.arg]:
    more = [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *more]


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
