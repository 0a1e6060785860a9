"""Names lines that clip gradients of a loss that was multiplied, before another line divides the gradients again."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from tensorlens.analysis.code_around import statement_around
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.changed_gradients import is_clip
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Backward, Call
from tensorlens.records.report import StandingOut

_PRODUCTS = frozenset("mul rmul imul".split())
_DIVISIONS = frozenset("div idiv itruediv mul imul foreach_div foreach_mul".split())
_MIN_STEPS = 3


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds them by one parameter for each step. A `GradScaler` has a sentence of its own."""
    facts, counts = training.facts, Counter[tuple[int, int]]()
    found: dict[tuple[int, int], tuple[Call, Call, Call]] = {}
    for number in {step.parameters[0] for step in training.training.steps if step.parameters}:
        scaled: Call | None = None
        clip: Call | None = None
        for moment in training.training.moments.get(number, ()):
            event = moment.event
            if moment.kind != "touch":
                clip = None
                scaled = _scaled(facts, event) if isinstance(event, Backward) else scaled
            elif isinstance(event, Call) and is_clip(training, event.site):
                clip = event
            elif isinstance(event, Call) and clip is not None and scaled is not None and _undoes(facts, event, scaled):
                counts[clip.site, event.site] += 1
                found[clip.site, event.site] = clip, event, scaled
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


def _scaled(facts: TraceIndex, backward: Backward) -> Call | None:
    """Returns the call that multiplies the root of a pass by a number."""
    made = next((call for root in backward.roots for call in facts.producers(root.tensor, backward.index)[:1]), None)
    return made if made is not None and op_name(made) in _PRODUCTS and len(made.inputs) == 1 else None


def _undoes(facts: TraceIndex, call: Call, product: Call) -> bool:
    """Returns whether a call divides by what the source multiplies the loss by, or multiplies by its reciprocal."""
    name = op_name(call)
    if name not in _DIVISIONS or call.within or (len(call.inputs) > 1 and not name.startswith("foreach")):
        return False
    return bool(_names(facts, call) & _names(facts, product))


def _names(facts: TraceIndex, call: Call) -> set[str]:
    """Returns the variables and attributes that are factors of a call, but for what it changes or multiplies."""
    span = facts.span(call.site)
    node = None if span is None else facts.names.syntax.node(span) or statement_around(facts, span)
    if isinstance(node, ast.Call):
        parts: list[ast.AST] = [*node.args, *node.keywords]
    elif isinstance(node, ast.BinOp):
        parts = [node.left, node.right]
    else:
        parts = [node.value] if isinstance(node, ast.AugAssign | ast.Expr) else []
    found = (each for part in parts for each in ast.walk(part) if isinstance(each, ast.Name | ast.Attribute))
    own = set(facts.names.operands(call))
    return {name for each in found if (name := ast.unparse(each)) != "self" and name not in own}
