"""Finds out why no graph leads from a result to a requested tensor: a backward that cannot be differentiated, a part
that was taken beside the forward pass."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.code_around import method_of
from tensorlens.analysis.lineage import ancestry, calls_reached_by
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.edits.grad_switches import without_decorator
from tensorlens.diagnostics.shared.kept import described
from tensorlens.diagnostics.shared.wording import fix, named
from tensorlens.records.model import Backward, Call, Failure, Span
from tensorlens.records.report import Fix

_LEAVING = ("numpy", "detach", "data", "item", "tolist", "no_grad")


@dataclass(frozen=True, slots=True)
class OnceDifferentiable:
    """A custom Function whose `backward` has the decorator `once_differentiable`, and the pass that ran it."""

    function: str
    decorator: Span
    is_plain: bool  # nothing in `backward` leaves the graph


def once_differentiable(facts: TraceIndex, root: int, before: int) -> OnceDifferentiable | None:
    """Finds such a Function among those that computed a gradient from which `root` is computed."""
    for made in (call for _, call in ancestry(facts, root, before) if call.op == "autograd.grad"):
        passes = [b for b in facts.backwards if b.op == "autograd.grad" and b.site == made.site and not b.failed]
        ran = min(passes, key=lambda one: abs(one.index - made.index), default=None)
        for name in _custom_functions(facts, ran) if ran is not None and ran.create_graph else ():
            if (found := _decorated(facts, name)) is not None:
                return found
    return None


def _custom_functions(facts: TraceIndex, ran: Backward) -> Iterator[str]:
    calls = (facts.call(index) for index in sorted(calls_reached_by(facts, ran).calls))
    names = (call.op.removesuffix(".apply") for call in calls if call is not None and call.op.endswith(".apply"))
    yield from dict.fromkeys(names)


def _decorated(facts: TraceIndex, name: str) -> OnceDifferentiable | None:
    classes = [(file, n) for file, tree in facts.trees() for n in ast.walk(tree) if isinstance(n, ast.ClassDef)]
    own = [(file, each) for file, each in classes if each.name == name.rpartition(".")[2]]
    if len(own) != 1:
        return None
    file, holder = own[0]
    method = method_of(holder, "backward")
    for each in method.decorator_list if method is not None else ():
        if ast.unparse(each).rpartition(".")[2] == "once_differentiable" and method is not None:
            parts = {n.attr if isinstance(n, ast.Attribute) else "" for n in ast.walk(method)}
            return OnceDifferentiable(name, facts.span_of(each, file), parts.isdisjoint(_LEAVING))
    return None


def twice_differentiable(facts: TraceIndex, found: OnceDifferentiable) -> Fix:
    """Suggests to leave the decorator out; as an edit, if nothing in `backward` leaves the graph."""
    edit = without_decorator(facts, found.decorator) if found.is_plain else None
    if edit is not None:
        title = "leave the decorator out: autograd can differentiate what this `backward` computes"
        return fix(title, edit, place=found.decorator)
    title = f"let `{found.function}.backward` compute with tensors only, and leave the decorator out"
    return fix(title, place=found.decorator)


@dataclass(frozen=True, slots=True)
class TakenBeside:
    """A requested tensor that was made from a tensor that the result was computed from too."""

    whole: int  # the tensor that both are made from
    made: Call  # the call that made the requested tensor
    used: Call  # the first call on the way to the result that used `whole`


def taken_beside(facts: TraceIndex, root: int, number: int, before: int) -> TakenBeside | None:
    """Finds the tensor from which both the requested tensor and the result are made, if they are."""
    made = facts.creator(number)
    if made is None or not facts.requires_grad(number, before - 1):
        return None
    wholes = [access.tensor for access in made.inputs if facts.requires_grad(access.tensor, made.index)]
    above = [call for _, call in ancestry(facts, root, before) if facts.requires_grad(root, before - 1)]
    for whole in wholes:
        recorded = [call for call in above if call.nodes[1] > call.nodes[0]]
        users = [call for call in recorded if any(access.tensor == whole for access in call.inputs)]
        if users and made not in users:
            return TakenBeside(whole, made, min(users, key=lambda call: call.index))
    return None


def line_of_use(facts: TraceIndex, failure: Failure, found: TakenBeside) -> int:
    """Returns the site that led to the use of the whole tensor, in the innermost function that was still running."""
    running = {facts.scope(site) for site in failure.stack}
    sites = facts.call_chain(found.used.site)
    return next((site for site in sites if facts.scope(site) in running), found.used.site)


def from_the_part(facts: TraceIndex, failure: Failure, found: TakenBeside, names: tuple[str, str]) -> Iterator[Fix]:
    """Suggests to compute the result from the requested tensor, or to ask for the gradient of the whole tensor."""
    name, output = names
    whole = described(facts, found.whole, found.used.index)
    place = facts.span(line_of_use(facts, failure, found))
    yield fix(f"compute {output} from {name}, not from {whole}", place=place)
    yield fix(f"or ask for the gradient of {whole} instead", place=facts.span(failure.site))


def part_text(facts: TraceIndex, found: TakenBeside, output: str) -> str:
    return f"{output} is computed from {named(facts, found.whole, found.used.index)}"
