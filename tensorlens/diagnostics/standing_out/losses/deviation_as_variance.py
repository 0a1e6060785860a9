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

_DEVIATION = re.compile(r"(.*_)?(std|stddev|sigma|scale|sd)s?", re.IGNORECASE)
_VARIANCE_PLACE = 2  # of the arguments of `gaussian_nll_loss`
_ROOTS = frozenset(("sqrt", "rsqrt", "square", "pow", "rpow"))
_SAME = frozenset("clamp clip clamp_min detach getitem squeeze unsqueeze view reshape cpu".split())
_PRODUCTS = frozenset(("mul", "rmul"))
_NOISE = frozenset(("randn", "randn_like"))
_MEETING = frozenset("add radd sub rsub iadd isub le lt ge gt".split())


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds them if the program also uses such a value as a deviation: `mu + 1.64 * sigma`, and takes no root of it."""
    facts, reported = training.facts, set[int]()
    for backward in examined_passes(facts):
        for call in recorded_above(facts, backward):
            if op_name(call) != "gaussian_nll_loss" or call.site in reported or len(call.inputs) < 3:
                continue
            reported.add(call.site)
            name, made = _variance(facts, call), facts.creator(call.inputs[_VARIANCE_PLACE].tensor)
            if name is None or made is None or not _DEVIATION.fullmatch(name):
                continue
            used = _used_as_deviation(facts, made)
            if used is not None:
                yield stands_out(
                    f"{as_written(facts, call)} takes `{name}` as the variance, so the standard deviation that it fits "
                    f"is the square root of `{name}`; {as_written(facts, used)} takes `{name}` for the deviation",
                    facts.label("value_made_here", call.site, "takes it as the variance", call.index),
                    facts.label("observed_here", used.site, "takes it for the deviation", used.index),
                )


def _variance(facts: TraceIndex, call: Call) -> str | None:
    """Returns the last part of the name that the source gives as the variance."""
    span = facts.span(call.site)
    node = None if span is None else facts.names.syntax.node(span)
    if not isinstance(node, ast.Call):
        return None
    given = [keyword.value for keyword in node.keywords if keyword.arg == "var"] or node.args[_VARIANCE_PLACE:][:1]
    return _named(given[0]) if given else None


def _used_as_deviation(facts: TraceIndex, made: Call) -> Call | None:
    """Returns a product of a number, or of noise, with a value that a line has made, if the product is added to another
    value or compared with one; None if anything takes a root or a square of such a value."""
    values, products, found = set[int](), dict[int, Call](), None
    for call in facts.calls:
        inputs, name = [access.tensor for access in call.inputs], op_name(call)
        own = values & set(inputs)
        is_same = name in _SAME and inputs[0] in own if own else (call.site, call.op) == (made.site, made.op)
        if is_same:
            values |= {access.tensor for access in call.outputs}
        elif own and (name in _ROOTS or (name in _PRODUCTS and len(own) == 1 and len(set(inputs)) < len(inputs))):
            return None
        elif own and name in _PRODUCTS and _scales(facts, call, values):
            products |= {access.tensor: call for access in call.outputs}
        elif found is None and name in _MEETING and len(inputs) == 2:
            found = next((products[number] for number in inputs if number in products), None)
    return found


def _scales(facts: TraceIndex, call: Call, values: set[int]) -> bool:
    """Returns whether a product has no other factor than a number or normal noise."""
    others = [access.tensor for access in call.inputs if access.tensor not in values]
    makers = [facts.creator(number) for number in others]
    return all(made is not None and op_name(made) in _NOISE for made in makers)


def _named(node: ast.AST) -> str | None:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None
