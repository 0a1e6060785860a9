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
_ROOTS = frozenset(("sqrt", "rsqrt"))


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds them if the program also multiplies this value with something, as a deviation, and takes no root of it."""
    facts, reported = training.facts, set[int]()
    for backward in examined_passes(facts):
        for call in recorded_above(facts, backward):
            if op_name(call) != "gaussian_nll_loss" or call.site in reported:
                continue
            reported.add(call.site)
            name = _variance(facts, call)
            if name is not None and _DEVIATION.fullmatch(name) and _is_factor(facts, name):
                yield stands_out(
                    f"{as_written(facts, call)} takes `{name}` as the variance, and other lines as a factor: the "
                    f"standard deviation that this loss fits is the square root of `{name}`",
                    facts.label("value_made_here", call.site, "takes it as the variance", call.index),
                )


def _variance(facts: TraceIndex, call: Call) -> str | None:
    """Returns the last part of the name that the source gives as the variance."""
    span = facts.span(call.site)
    node = None if span is None else facts.names.syntax.node(span)
    if not isinstance(node, ast.Call):
        return None
    given = [keyword.value for keyword in node.keywords if keyword.arg == "var"] or node.args[_VARIANCE_PLACE:][:1]
    return _named(given[0]) if given else None


def _is_factor(facts: TraceIndex, name: str) -> bool:
    """Returns whether the program multiplies something with a value of this name, and neither squares it nor takes its
    root."""
    is_factor = False
    for node in (node for _, tree in facts.trees() for node in ast.walk(tree)):
        if isinstance(node, ast.BinOp) and name in (_named(node.left), _named(node.right)):
            is_square = isinstance(node.op, ast.Pow) or _named(node.left) == _named(node.right)
            if is_square:
                return False
            is_factor |= isinstance(node.op, ast.Mult)
        elif isinstance(node, ast.Call) and _named(node.func) in (*_ROOTS, "square", "pow"):
            of = node.func.value if isinstance(node.func, ast.Attribute) else None
            if name in map(_named, (*node.args, *([of] if of is not None else []))):
                return False
    return is_factor


def _named(node: ast.AST) -> str | None:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None
