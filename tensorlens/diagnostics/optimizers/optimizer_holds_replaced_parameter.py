"""Finds the cause of `optimizer-holds-replaced-parameter`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.replaced_parameters import ReplacedParameter, replaced_parameters
from tensorlens.analysis.training.timeline import Training, training_of
from tensorlens.diagnostics.shared.optimizers import optimizer_label, optimizer_name, several
from tensorlens.diagnostics.shared.wording import finding, fix
from tensorlens.records.observations import Step
from tensorlens.records.report import Diagnostic


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    training = training_of(facts)
    groups: dict[tuple[int | None, int | None], tuple[Step, list[ReplacedParameter]]] = {}
    for replaced, step in replaced_parameters(training):
        groups.setdefault((replaced.site, step.site), (step, []))[1].append(replaced)
    for step, group in groups.values():
        yield _report(training, step, group)


def _report(training: Training, step: Step, group: list[ReplacedParameter]) -> Diagnostic:
    facts, first = training.facts, group[0]
    name = several(facts, sorted({replaced.new for replaced in group}))
    optimizer = optimizer_name(training, step)
    done = "a copy is made here" if first.copied else "replaced here"
    return finding(
        "optimizer-holds-replaced-parameter",
        "warning",
        f"`{optimizer}` does not train {name}: it holds what was there before",
        "an optimizer keeps the parameter objects that it was given; the new ones get gradients and are never changed",
        [
            facts.label("replaced_here", first.site, f"{done}: {name} from here on, not known to `{optimizer}`"),
            optimizer_label(training, step),
            facts.label("needed_here", step.site, "the old parameters get no gradient, the new ones no step"),
        ],
        fixes=(fix(f"make `{optimizer}` after this, from the parameters that are then there"),),
        evidence={"parameters": sorted({facts.name(replaced.new) for replaced in group})},
    )
