"""Names lines that write computed values into parameters without their graph, as where a hypernetwork is to train."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.parameters.generated_values import generated_values
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds `vector_to_parameters(theta, ...)` and `p.data = generated`, where another term of the loss trains what
    computes the values."""
    facts = training.facts
    for each in generated_values(training):
        use = "the line overwrites what steps make of it" if each.is_stepped else "no step uses it"
        yield stands_out(
            f"{as_written(facts, each.write)} writes values that are computed from {listed(each.computing)} into "
            f"{listed(each.written)} without their graph, {each.times:,} times: the gradient of the latter does not "
            f"reach the former, and {use}",
            facts.label("graph_cut_here", each.write.site, "written without a graph", each.write.index),
            facts.label("needed_here", each.backward.site, "backward"),
        )
