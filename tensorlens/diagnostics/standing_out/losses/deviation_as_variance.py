"""Names losses that take a standard deviation as the variance: `gaussian_nll_loss(mu, y, sigma)`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.losses.deviation_uses import SAME, VARIANCE_PLACE, used_as_deviation
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_RATIOS = frozenset(("div", "truediv"))  # a difference in units of a scale may be one in units of a variance
_DEVIATION = re.compile(r"(.*_)?(std|stddev|stdev|deviation|sigma|scale|sd)s?")


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
            used = used_as_deviation(facts, call)
            if used is not None and not (name.endswith("scale") and op_name(used) in _RATIOS):
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
    given = [keyword.value for keyword in node.keywords if keyword.arg == "var"] or node.args[VARIANCE_PLACE:][:1]
    return _named(given[0]) if given else None


def _named(node: ast.AST) -> str | None:
    """Returns the last part of a name, also of an item with one, or of what a method returns the same values of."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SAME:
        node = node.func.value
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
        return node.slice.value
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None
