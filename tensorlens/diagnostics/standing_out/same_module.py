"""Names modules that the script takes for two: one name gives a constant target, the other is trained."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.two_names import two_names
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.report import Label, StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds a target network, teacher or old policy that has the parameters of the module that it is a target for."""
    for pair in two_names(training.facts, training.training.stepped):
        text = (
            f"`{pair.constant_name}` and `{pair.trained_name}` have the same parameters: the loss takes the result of "
            f"`{pair.constant_name}` as a constant, and its gradients go to `{pair.trained_name}`"
        )
        yield stands_out(
            text,
            Label("graph_cut_here", pair.constant, "gives a constant"),
            Label("graph_built_here", pair.trained, "trained"),
        )
