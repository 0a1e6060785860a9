"""Names loads of an optimizer's state in vain: another optimizer that a later line makes steps the parameters."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.checkpoints_and_averages.held_optimizers import is_one_variable
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.run_summary import is_complete
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import code_at
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut
from tensorlens.records.training import OptimizerGroup


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds optimizers with momentum that load averages and make no step, while one of the same class, with the same
    rate, is made after the load, for the same variable, and steps all their parameters."""
    facts = training.facts
    if training.training.is_hidden or facts.trace.inspection.switches or not is_complete(facts.trace):
        return
    made = [call for call in facts.calls if call.op.startswith("optim.")]
    for unused in training.groups:
        if unused.steps or unused.is_shared or not unused.momentum or not unused.parameters:
            continue
        old = next(iter(_calls_of(made, unused)), None)  # a function may make both at one line
        loads = [
            each for each in facts.trace.inspection.loaded_averages if set(each.parameters) <= set(unused.parameters)
        ]
        load = None if old is None else next((each for each in loads if each.index > old.index), None)
        others = [each for each in training.groups if each.steps and _is_same(unused, each)]
        if load is None or not others or any(each.optimizer == unused.optimizer for each in others):
            continue
        new = next(reversed(_calls_of(made, others[0])), None)
        if new is None or load.index > new.index:  # the index is that of the next event
            continue
        if is_one_variable(facts, load.site, new.site):
            yield stands_out(
                f"{code_at(facts, load.site, 'Optimizer.load_state_dict')} loads averages of gradients into an "
                f"`{unused.name}` that makes no step: another `{others[0].name}`, made after it, begins without them, "
                "and steps the parameters",
                facts.label("optimizer_made_here", new.site, "made anew here"),
                facts.label("replaced_here", load.site, "loaded here"),
                facts.label("optimizer_made_here", unused.site, "the one that is loaded"),
            )
            return


def _is_same(unused: OptimizerGroup, other: OptimizerGroup) -> bool:
    is_alike = other.name == unused.name and other.made_rate == unused.made_rate
    return is_alike and set(unused.parameters) <= set(other.parameters)


def _calls_of(made: list[Call], group: OptimizerGroup) -> list[Call]:
    """Returns the calls that made an optimizer with the parameters of a group at its line."""
    numbers = set(group.parameters)
    return [c for c in made if c.site == group.site and numbers <= {access.tensor for access in c.inputs}]
