"""Names hooks and learning-rate functions that a loop makes and that read its variable, when it has its last value."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.late_functions import Loop, Made, runs_inside, scheduled_functions, set_later
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.report import Label, StandingOut

_HOOKS = frozenset(
    "register_hook register_forward_hook register_forward_pre_hook register_full_backward_hook "
    "register_full_backward_pre_hook register_post_accumulate_grad_hook".split()
)


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if not training.measured.passes:
        return
    for file, tree in facts.trees():
        for loop in (node for node in ast.walk(tree) if isinstance(node, Loop)):
            if isinstance(loop, ast.For) and runs_inside(facts, file, loop):
                continue
            for made, taker in _made_in(facts, file, loop):
                names = _variables(loop) & _free(made)
                for name in sorted(names - set_later(facts, file, loop) if names else ()):
                    when, where = "each of its hooks runs", "all of them"
                    if not taker:
                        when, where = "a scheduler steps", "each function that the loop has made"
                    yield stands_out(
                        f"the loop has ended when {when}: `{name}` then has its last value in {where}",
                        Label("function_defined_here", facts.span_of(made, file), f"uses `{name}` when it runs"),
                    )
                    break


def _made_in(facts: TraceIndex, file: str, loop: Loop) -> Iterator[tuple[Made, str]]:
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
        if taker is not None and last_name(taker.func) in _HOOKS and isinstance(node, Made):
            if _is_registered(facts, file, taker):
                yield node, last_name(taker.func)
    yield from ((node, "") for node in scheduled_functions(facts, file, loop))


def _is_registered(facts: TraceIndex, file: str, taker: ast.Call) -> bool:
    around = facts.span_of(taker, file)
    callbacks = facts.trace.callbacks
    found = [each for each in callbacks.registrations if (s := facts.span(each.site)) is not None and s == around]
    return len(found) > 1 and len({each.target for each in found}) > 1


def _variables(loop: Loop) -> set[str]:
    """Returns the variables of a loop, and those that each round computes of them."""
    targets = [loop.target] if isinstance(loop, ast.For) else [each.target for each in loop.generators]
    found = {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}
    for statement in loop.body if isinstance(loop, ast.For) else ():
        if isinstance(statement, ast.Assign) and found & {last_name(node) for node in ast.walk(statement.value)}:
            found |= {target.id for target in statement.targets if isinstance(target, ast.Name)}
    return found


def _free(made: Made) -> set[str]:
    """Returns the names that a function reads when it runs, and that are none of its own."""
    own = {each.arg for node in ast.walk(made) if isinstance(node, ast.arguments) for each in _arguments(node)}
    body = [made.body] if isinstance(made, ast.Lambda) else made.body
    names = [node for each in body for node in ast.walk(each) if isinstance(node, ast.Name)]
    own |= {node.id for node in names if isinstance(node.ctx, ast.Store)}
    return {node.id for node in names if isinstance(node.ctx, ast.Load)} - own


def _arguments(arguments: ast.arguments) -> list[ast.arg]:
    more = [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *more]
