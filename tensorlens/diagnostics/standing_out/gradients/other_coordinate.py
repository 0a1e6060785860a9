"""Names derivatives that are taken by another coordinate than their name says."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.gradients.coordinate_names import wrong_coordinates
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.report import Label, StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if not any(backward.create_graph for backward in facts.backwards) or not training.measured.steps:
        return
    for each in wrong_coordinates(facts):
        if each.expected.startswith("the "):
            text = f"`{each.name}` is a derivative of {each.actual}, and not of {each.expected}"
        else:
            text = (
                f"`{each.name}` is the derivative of `{each.source}` by `{each.actual}`, and not by `{each.expected}`"
            )
        yield stands_out(text, Label("value_made_here", each.span, "differentiated here"))
