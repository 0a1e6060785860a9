"""Names lines that clip gradients of a loss that was multiplied, before another line divides the gradients again."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from tensorlens.analysis.code_around import statement_around
from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.changed_gradients import is_clip
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.gradients.measuring_clips import bounds_of, only_measures
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Backward, Call
from tensorlens.records.report import StandingOut

_PRODUCTS = frozenset("mul rmul imul".split())
_DIVISIONS = frozenset("div idiv itruediv foreach_div".split())
_PRODUCTS_IN_PLACE = frozenset("mul imul foreach_mul".split())
_MIN_STEPS = 3


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds them by one parameter for each step. A `GradScaler` has a sentence of its own."""
    facts, counts = training.facts, Counter[tuple[int, int]]()
    found: dict[tuple[int, int], tuple[Call, Call, Call]] = {}
    for number in {step.parameters[0] for step in training.training.steps if step.parameters}:
        for clip, division, product in _clipped_steps(training, number):
            counts[clip.site, division.site] += 1
            found[clip.site, division.site] = clip, division, product
    for key, (clip, division, product) in found.items():
        if counts[key] >= _MIN_STEPS:
            yield stands_out(
                f"{as_written(facts, clip)} clips the gradients before {as_written(facts, division)}: "
                f"{as_written(facts, product)} has multiplied the loss, and the norm that is clipped is that of the "
                "multiplied gradients",
                facts.label("observed_here", clip.site, "clipped here", clip.index),
                facts.label("modified_here", division.site, "changed after that", division.index),
                facts.label("value_made_here", product.site, "multiplied here", product.index),
            )


def _clipped_steps(training: MeasuredTraining, number: int) -> Iterator[tuple[Call, Call, Call]]:
    """Yields the calls that clip, that divide and that multiply the loss, for each step of a parameter that uses a
    gradient which nothing else changes between the clipping and the step."""
    facts, clips, divisions, product = training.facts, list[Call](), list[Call](), None
    for moment in training.training.moments.get(number, ()):
        event = moment.event
        if moment.kind == "touch" and isinstance(event, Call):
            is_clipping = is_clip(training, event.site)
            clips += [event] if is_clipping and not (clips and clips[-1].site == event.site and not divisions) else []
            divisions += [] if is_clipping or not clips else [event]
            continue
        if moment.kind == "update" and product is not None and len(clips) == len(divisions) == 1:
            if _undoes(facts, divisions[0], product) and not _is_meant(facts, clips[0], product):
                yield clips[0], divisions[0], product
        clips, divisions = [], []
        product = _scaled(facts, event) if isinstance(event, Backward) else product


def _scaled(facts: TraceIndex, backward: Backward) -> Call | None:
    """Returns the call that multiplies the root of a pass by a number."""
    made = next((call for root in backward.roots for call in facts.producers(root.tensor, backward.index)[:1]), None)
    return made if made is not None and op_name(made) in _PRODUCTS and len(made.inputs) == 1 else None


def _undoes(facts: TraceIndex, call: Call, product: Call) -> bool:
    """Returns whether a call divides by what the source multiplies the loss by, or multiplies by its reciprocal."""
    name = op_name(call)
    if name not in _DIVISIONS | _PRODUCTS_IN_PLACE or call.within:
        return False
    if len(call.inputs) > 1 and not name.startswith("foreach"):
        return False
    whole, below = _factors(facts, call), _factors(facts, call, below=True)
    return bool((whole - below if name in _DIVISIONS else below) & _factors(facts, product))


def _is_meant(facts: TraceIndex, clip: Call, product: Call) -> bool:
    """Returns whether a call of PyTorch's clipping only measures the norm, or is given the factor of the loss too."""
    span = facts.span(clip.site)
    node = None if span is None else facts.names.syntax.node(span)
    if span is None or not isinstance(node, ast.Call):
        return True
    bounds = bounds_of(node)
    if only_measures(facts, clip.site):
        return True
    factors, names = _factors(facts, product), {name for each in bounds for name in _variables(each)}
    if names & factors:
        return True
    assigned = (each for each in ast.walk(facts.tree(span.file)) if isinstance(each, ast.Assign))
    return any(
        factors & _variables(each.value) and names & {ast.unparse(target) for target in each.targets}
        for each in assigned
    )


def _factors(facts: TraceIndex, call: Call, below: bool = False) -> set[str]:
    """Returns the variables and attributes that are factors of a call, but for what it changes or multiplies; with
    `below` those in a denominator."""
    span = facts.span(call.site)
    node = None if span is None else facts.names.syntax.node(span) or statement_around(facts, span)
    if isinstance(node, ast.Call):
        parts: list[ast.AST] = [*node.args, *node.keywords]
    elif isinstance(node, ast.BinOp):
        parts = [node.left, node.right]
    else:
        parts = [node.value] if isinstance(node, ast.AugAssign | ast.Expr) else []
    if below:
        inner = (each for part in parts for each in ast.walk(part))
        parts = [each.right for each in inner if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Div)]
    return {name for part in parts for name in _variables(part)} - set(facts.names.operands(call))


def _variables(node: ast.AST) -> set[str]:
    """Returns the variables and the whole attributes of an expression, without the functions that it calls."""
    if isinstance(node, ast.Name | ast.Attribute):
        name = plain_name(node)
        return set() if name is None else {name}
    children = (child for child in ast.iter_child_nodes(node) if child is not getattr(node, "func", None))
    return {name for child in children for name in _variables(child)}
