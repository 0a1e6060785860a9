"""Names dropout and batch norm that run in training mode where gradients are off: no line calls `eval()` of a module
around them, or one calls `train()` again before they run."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import parent_of
from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.report import StandingOut
from tensorlens.records.training_values import TrainingModeKept

_MIN_RUNS = 3
_MAX_CALLS = 64


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    found = [each for each in facts.trace.inspection.training_mode if each.number == training.measured.number]
    if not found or training.training.is_hidden or facts.trace.inspection.switches:
        return
    fixed = [each for each in found if not each.steps]
    feeding = _feeding_sites(training)
    found = [each for each in found if each.steps and (each.switched is not None or each.site not in feeding)]
    found = [] if _are_statistics(training, found) else [each for each in found if each.switched is not None] or found
    if any(each.runs >= _MIN_RUNS for each in fixed) and not _has_averages(training):
        yield _of_fixed(training, fixed)
    if not found:
        return
    back = next((each.switched for each in found if each.switched is not None), None)
    spans = {each.site: facts.span(each.site) for each in found}
    sites = {None if span is None else span.line: site for site, span in spans.items()}.values()  # one of each line
    evaluated = None if back is not None else next((e.evaluated for e in found if e.evaluated is not None), None)
    yield stands_out(
        _text(found, back is not None),
        facts.label("mode_entered_here", back, "switched to training mode here"),
        *[facts.label("observed_here", site, "runs in training mode") for site in sites][:3],
        facts.label("mode_entered_here", evaluated, "switches a module without it to eval mode"),
    )


def _text(found: list[TrainingModeKept], is_switched: bool) -> str:
    kinds = " and ".join(f"`{each}`" for each in dict.fromkeys(each.layer for each in found))
    runs, steps = max(each.runs for each in found), max(each.steps for each in found)
    times = "once" if runs == 1 else f"{runs:,} times"
    verb = "runs" if len(found) == 1 else "run" if " and " in kinds else "layers run"
    why = "no line calls `eval()` of a module that has it"
    if is_switched:
        why = f"another line puts {'it' if len(found) == 1 else 'them'} in this mode"
    return f"{kinds} {verb} in training mode {times} where gradients are off, after {steps:,} steps: {why}"


def _feeding_sites(training: MeasuredTraining) -> set[int]:
    """Returns the lines that computed constants of a loss, as a generator that makes the data of another model does."""
    facts, sites = training.facts, set[int]()
    for backward in {each.site: each for each in examined_passes(facts)}.values():
        for call in recorded_above(facts, backward):
            constants = (a.tensor for a in call.inputs if not facts.requires_grad(a.tensor, call.index - 1))
            sites |= {made.site for each in constants for _, made in ancestry(facts, each, call.index, _MAX_CALLS)}
    return sites


def _are_statistics(training: MeasuredTraining, found: list[TrainingModeKept]) -> bool:
    """Returns whether runs update the statistics of batch norm alone: nothing uses what `model(x)` returns."""
    facts = training.facts
    return all("BatchNorm" in each.layer and _is_statement(facts, each.site) for each in found)


def _is_statement(facts: TraceIndex, site: int | None) -> bool:
    """Returns whether the line that runs a model is an expression of its own, outside of methods `forward()`."""
    sites = facts.trace.sites
    while site is not None and sites[site].function.rpartition(".")[2] == "forward" and sites[site].caller is not None:
        site = sites[site].caller
    span, node = facts.span(site), facts.node_at(site)
    return span is not None and node is not None and isinstance(parent_of(facts, span.file, node), ast.Expr)


def _has_averages(training: MeasuredTraining) -> bool:
    """Returns whether lines change parameters that no optimizer holds: a teacher that is an average, as a mean teacher,
    may be meant to run like the student."""
    first = training.training.steps[0].index if training.training.steps else 0
    return any(row.group is None and training.writes(row.tensor, since=first) for row in training.rows)


def _of_fixed(training: MeasuredTraining, found: list[TrainingModeKept]) -> StandingOut:
    """Says this of layers of a module that no step trains."""
    facts, runs = training.facts, max(each.runs for each in found)
    kinds = " and ".join(f"`{each}`" for each in dict.fromkeys(each.layer for each in found))
    sites = dict.fromkeys(each.site for each in found)
    return stands_out(
        f"{kinds} of a module that no step trains {'runs' if len(found) == 1 else 'run'} in training mode "
        f"{runs:,} times where gradients are off: no line calls `eval()` of it",
        *[facts.label("observed_here", site, "runs in training mode") for site in sites][:3],
    )
