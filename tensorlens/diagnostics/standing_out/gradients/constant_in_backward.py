"""Names tensors that a custom `forward` computes and saves, and whose part is missing in a second derivative."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.gradients.saved_intermediates import saved_intermediates
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.report import Label, StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in saved_intermediates(facts):
        found, names = each.measured, _listed(each.names)
        them = "it for a constant" if len(each.names) == 1 else "them for constants"
        yield stands_out(
            f"`{found.function}.backward` uses {names}, which `forward` computes and saves without a graph, so that "
            f"autograd takes {them}: for a weighted sum of the gradient of `{found.gradient}`, it gives "
            f"{_text(found.derivatives)} as the derivative by `{found.argument}`, and central differences give "
            f"{_text(found.differences)}",
            *(Label("saved_here", span, f"saves {_listed(given)}") for span, given in each.saved),
            *(Label("value_made_here", span, f"makes {_listed(given)} without a graph") for span, given in each.made),
            facts.label("returned_here", each.run.returned, "returns the gradient"),
            facts.label("needed_here", each.backward.site, "makes a graph of the gradient", each.backward.index),
        )


def _listed(names: tuple[str, ...]) -> str:
    return " and ".join(f"`{name}`" for name in names)


def _text(values: tuple[float, ...]) -> str:
    shown = [f"{value:.3g}" for value in values[:3]]
    return shown[0] if len(shown) == 1 else f"[{', '.join(shown)}]"
