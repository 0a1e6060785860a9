"""Finds the cause of `parameter-not-registered`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.timeline import Training, training_of
from tensorlens.diagnostics.shared.optimizers import born, optimizer_label, optimizer_name
from tensorlens.diagnostics.shared.wording import finding, fix
from tensorlens.records.observations import Step, Unregistered
from tensorlens.records.report import Diagnostic


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    training = training_of(facts)
    groups: dict[tuple[str, str], list[Unregistered]] = {}
    for entry in facts.trace.inspection.unregistered:
        state = facts.state(entry.tensor, entry.index)
        if state is not None and state.is_leaf and training.is_left_out(entry.tensor):
            groups.setdefault((entry.module, _attribute(entry)), []).append(entry)
    for group in groups.values():
        step = next((s for s in training.steps if s.index >= group[0].index), None)
        if step is not None:
            yield _report(training, step, group)


def _attribute(entry: Unregistered) -> str:
    """Returns the attribute that a name begins with: "hidden" of "hidden[0].weight"."""
    return entry.name.partition("[")[0]


def _report(training: Training, step: Step, group: list[Unregistered]) -> Diagnostic:
    facts, first = training.facts, group[0]
    rest = f" and {len(group) - 1} more" if len(group) > 1 else ""
    name = f"`{first.name}`{rest}"
    optimizer = optimizer_name(training, step)
    plain = facts.tensor(first.tensor).type != "Parameter"
    alone = first.name.endswith("]")  # a container holds the parameter itself, not a layer with it
    cure = (
        f"make it a parameter: `self.{first.name} = torch.nn.Parameter(...)`"
        if plain
        else f"hold what `{_attribute(first)}` holds in a `torch.nn.{'Parameter' if alone else 'Module'}List` "
        f"or `{'Parameter' if alone else 'Module'}Dict`"
    )
    return finding(
        "parameter-not-registered",
        "warning",
        f"no optimizer ever changes {name} of `{first.module}`, though backward computes a gradient",
        "`parameters()` finds what is assigned as a `Parameter` or a `Module`; this one is in a plain attribute",
        [
            facts.label("leaf_made_here", born(facts, first.tensor), f"{name}: unknown to `parameters()`"),
            optimizer_label(training, step),
            facts.label("needed_here", step.site, f"`{optimizer}.step()` does not know it"),
        ],
        fixes=(fix(cure),),
        evidence={"parameters": [entry.name for entry in group]},
    )
