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
        if found.gradient == found.argument:
            derivative = f"the second derivative by `{found.argument}`"
        else:
            derivative = f"the derivative by `{found.argument}` of the gradient of `{found.gradient}`"
        yield stands_out(
            f"`{found.function}.backward` uses {names}, which its `forward` computes without a graph, as a constant: "
            f"where its gradient is differentiated again, {derivative} is {_text(found.derivatives)}, "
            f"while `backward` changes by {_text(found.differences)}",
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
