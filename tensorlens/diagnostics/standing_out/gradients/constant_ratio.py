"""Names divisions of a value by its own sum over one element, and softmax over one: no gradient comes of either."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.lineage import graph_leaves
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.gradients.constant_ratios import ConstantRatio, constant_ratios
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.report import StandingOut

_WORDS = {"mean": "mean", "amax": "maximum", "amin": "minimum"}


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    zero = {row.tensor for row in training.rows if row.is_zero}
    for each in constant_ratios(facts):
        if each.is_of_setting or graph_leaves(facts, each.value, each.call.index) & zero:
            continue  # of the latter, `zero_gradient` names it
        label = facts.label("value_made_here", each.call.site, "does not depend on its input", each.call.index)
        yield stands_out(ratio_text(facts, each), label)


def ratio_text(facts: TraceIndex, each: ConstantRatio) -> str:
    """Says why a result is constant."""
    code, value = as_written(facts, each.call), named(facts, each.value, each.call.index)
    shape = facts.tensor(each.value).shape
    times = f"in each of {each.runs:,} runs"
    if not each.divisor:
        return f"{code} is a softmax over one value {times}, of the shape {shape}: it is 1, and its gradient is zero"
    result = "1 or -1" if each.has_sign else "1"
    what = "norm" if each.has_sign else _WORDS.get(each.divisor, "sum")
    return (
        f"{code} divides each element by itself {times}: {value} has the shape {shape}, and the {what} is over one "
        f"element. The result is {result}, and its gradient is zero"
    )
