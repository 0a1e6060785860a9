"""Names states of an optimizer that a checkpoint keeps, and that nothing loads where the training goes on from it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.model import Call
from tensorlens.records.report import Label, StandingOut

_LOADS = "Module.load_state_dict"


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds a new optimizer with momentum that steps a module after it was loaded, in a program that keeps the state of
    an optimizer and loads none."""
    facts = training.facts
    kept = list(_state_dicts(facts))
    loads = [call for call in facts.calls if facts.trace.sites[call.site].through == _LOADS and call.writes]
    if not kept or not loads or training.training.is_hidden or facts.trace.inspection.switches:
        return
    made = [call for call in facts.calls if call.op.startswith("optim.")]
    for step in training.training.steps:
        new = training.training.optimizer_call(step)
        if new is None or new is made[0] or new.op not in {call.op for call in made if call.index < new.index}:
            continue
        load = next(
            (call for call in reversed(loads) if call.index < step.index and _loads_for(call, step.parameters)), None
        )
        groups = [group for group in training.groups if group.site == new.site and group.momentum]
        if load is None or not groups or not _stepped_before(training, new, load):
            continue
        name = groups[0].name
        yield stands_out(
            f"a line keeps the `state_dict()` of an optimizer, and none loads it: the `{name}` that goes on after the "
            "parameters were loaded begins without averages of earlier gradients",
            *kept[:1],
            facts.label("optimizer_made_here", new.site, "begins anew"),
            facts.label("replaced_here", load.site, "the parameters are loaded here"),
        )
        return


def _loads_for(load: Call, parameters: tuple[int, ...]) -> bool:
    return any(write.tensor in parameters for write in load.writes)


def _stepped_before(training: MeasuredTraining, new: Call, load: Call) -> bool:
    """Returns whether another optimizer stepped before."""
    return any(step.index < min(new.index, load.index) for step in training.training.steps)


def _state_dicts(facts: TraceIndex) -> Iterator[Label]:
    """Yields the places that ask for the state of an optimizer; nothing if one may load a state into an optimizer.

    A receiver with "opt" in its name counts as one.
    """
    found: list[Label] = []
    for file, tree in facts.trees():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            name = (plain_name(node.func.value) or "?").rpartition(".")[2].lower()
            if node.func.attr == "state_dict" and "opt" in name:
                found.append(Label("observed_here", facts.span_of(node, file), "kept here"))
            elif node.func.attr == "load_state_dict" and ("opt" in name or name == "?"):
                return
    yield from found
