"""Names losses that take a standard deviation as the variance: `gaussian_nll_loss(mu, y, sigma)`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_DEVIATION = re.compile(r"(.*_)?(std|stddev|stdev|deviation|sigma|scale|sd)s?", re.IGNORECASE)
_VARIANCE_PLACE = 2  # of the arguments of `gaussian_nll_loss`
_ROOTS = frozenset(("sqrt", "rsqrt", "square", "pow", "rpow"))
_SAME = frozenset("clamp clip clamp_min detach getitem squeeze unsqueeze view reshape cpu".split())
_PRODUCTS = frozenset(("mul", "rmul"))
_NOISE = frozenset(("randn", "randn_like"))
_NORMAL = ("Normal.", "LogNormal.")
_MEETING = frozenset("add radd sub rsub iadd isub le lt ge gt".split())


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds them if the program also uses such a value as a deviation: `mu + 1.64 * sigma`, and takes no root of it."""
    facts, reported = training.facts, set[int]()
    for backward in examined_passes(facts):
        for call in recorded_above(facts, backward):
            if op_name(call) != "gaussian_nll_loss" or call.site in reported or len(call.inputs) < 3:
                continue
            reported.add(call.site)
            name = _variance(facts, call)
            if name is None or not _DEVIATION.fullmatch(name):
                continue
            used = _used_as_deviation(facts, call)
            if used is not None:
                yield stands_out(
                    f"{as_written(facts, call)} takes `{name}` as the variance, so the standard deviation that it fits "
                    f"is the square root of `{name}`; {as_written(facts, used)} takes `{name}` for the deviation",
                    facts.label("value_made_here", call.site, "takes it as the variance", call.index),
                    facts.label("observed_here", used.site, "takes it for the deviation", used.index),
                )


def _variance(facts: TraceIndex, call: Call) -> str | None:
    """Returns the last part of the name that the source gives as the variance."""
    node = facts.node_at(call.site)
    if not isinstance(node, ast.Call):
        return None
    given = [keyword.value for keyword in node.keywords if keyword.arg == "var"] or node.args[_VARIANCE_PLACE:][:1]
    return _named(given[0]) if given else None


def _used_as_deviation(facts: TraceIndex, loss: Call) -> Call | None:
    """Returns a product of a number, or of noise, with a value that a line has made, if the product is added to another
    value or compared with one, also a difference that is divided by such a value, and a normal distribution that is
    given one; None if anything takes a root or a square of such a value."""
    number, before = loss.inputs[_VARIANCE_PLACE].tensor, loss.index
    made = facts.creator(number)
    while made is not None and op_name(made) in _SAME and made.inputs and made.index < before:
        number, before = made.inputs[0].tensor, made.index
        made = facts.creator(number)
    if made is None:
        return None
    place = [access.tensor for access in made.outputs].index(number)
    values, products, found = set[int](), dict[int, Call](), None
    for call in facts.calls:
        inputs, name = [access.tensor for access in call.inputs], op_name(call)
        if facts.trace.sites[call.site].through.startswith(_NORMAL):
            if name == "broadcast_tensors" and inputs[1:2] and inputs[1] in values:
                found = found or call
            continue
        own = values & set(inputs)
        is_same = name in _SAME and inputs[0] in own if own else (call.site, call.op) == (made.site, made.op)
        if is_same:
            outputs = [access.tensor for access in call.outputs]
            values |= set(outputs if own else outputs[place : place + 1])
        elif own and (name in _ROOTS or (name in _PRODUCTS and len(own) == 1 and len(set(inputs)) < len(inputs))):
            return None
        elif own and name in _PRODUCTS and _scales(facts, call, values):
            products |= {access.tensor: call for access in call.outputs}
        elif own and (_is_score(facts, call, values) or (name == "normal" and inputs[-1] in own)):
            found = found or call
        elif found is None and name in _MEETING and len(inputs) == 2:
            found = next((products[number] for number in inputs if number in products), None)
    return found


def _is_score(facts: TraceIndex, call: Call, values: set[int]) -> bool:
    """Returns whether a call divides a difference by one of some values."""
    inputs = [access.tensor for access in call.inputs]
    if op_name(call) not in ("div", "truediv") or len(inputs) != 2 or inputs[1] not in values:
        return False
    made = next(iter(facts.producers(inputs[0], call.index)), None)
    return made is not None and op_name(made) in ("sub", "abs") and not values & {each.tensor for each in made.inputs}


def _scales(facts: TraceIndex, call: Call, values: set[int]) -> bool:
    """Returns whether a product has no other factor than a number or normal noise."""
    others = [access.tensor for access in call.inputs if access.tensor not in values]
    makers = [facts.creator(number) for number in others]
    return all(made is not None and op_name(made) in _NOISE for made in makers)


def _named(node: ast.AST) -> str | None:
    """Returns the last part of a name, also of an item with one, or of what a method returns the same values of."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SAME:
        node = node.func.value
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
        return node.slice.value
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None
