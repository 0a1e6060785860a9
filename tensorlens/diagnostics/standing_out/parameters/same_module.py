"""Names modules that the script takes for two: one name gives a constant target, the other is trained."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.parameters.shallow_copies import TakenForTwo, taken_for_two
from tensorlens.analysis.training.two_names import two_names
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import code_at
from tensorlens.records.model import Backward
from tensorlens.records.report import Label, StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds a target network, teacher or old policy that has the parameters of the module that it is a target for."""
    facts = training.facts
    pairs = list(two_names(facts, training.training.stepped))
    copies = [] if training.training.is_hidden else list(taken_for_two(training.training))
    targets = [each for each in copies if each.constant is not None]
    for pair in pairs:
        text = (
            f"`{pair.constant_name}` and `{pair.trained_name}` have the same parameters: the loss takes the result of "
            f"`{pair.constant_name}` as a constant, and its gradients go to `{pair.trained_name}`"
        )
        yield stands_out(
            text,
            Label("graph_cut_here", pair.constant, "gives a constant"),
            Label("graph_built_here", pair.trained, "trained"),
            *(facts.label("shared_here", each.copy.site, "`copy.copy()` shares them") for each in targets),
        )
    yield from (_of_copy(facts, each) for each in copies if each.constant is None or not pairs)


def _of_copy(facts: TraceIndex, each: TakenForTwo) -> StandingOut:
    made = facts.label("shared_here", each.copy.site, "copied here, with the same parameters", each.copy.index)
    made_by = f"{code_at(facts, each.copy.site, 'copy.copy')} copies a {each.copy.module} without its parameters"
    if each.constant is None:
        assert not isinstance(each.trained, Backward)
        name = each.trained.op.removesuffix(".step")
        return stands_out(
            f"{made_by}: both modules have the same ones, and later steps of `{name}` write to them",
            made,
            facts.label("modified_here", each.trained.site, "writes to both"),
        )
    return stands_out(
        f"{made_by}: both modules have the same ones. A loss takes a result that is computed from them as a "
        f"constant, and its gradients train them, too",
        made,
        facts.label("graph_cut_here", each.constant.site, "gives a constant", each.constant.index),
        facts.label("needed_here", each.trained.site, "this pass trains the same parameters"),
    )
