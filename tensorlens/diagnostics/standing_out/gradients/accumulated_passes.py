"""Says how the gradients of several passes add up before a step, where the passes do not count alike."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tensorlens.analysis.code_around import loop_around_line
from tensorlens.analysis.naming.syntax import called_name, last_name
from tensorlens.analysis.training.gradients.accumulation import (
    Accumulation,
    Discarded,
    accumulations,
    discarded_passes,
    is_split_step,
    use_parts,
)
from tensorlens.analysis.training.gradients.weighted_elements import are_weighted
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.run_summary import is_complete
from tensorlens.analysis.written_numbers import only_value
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.report import StandingOut

_UNEQUAL = 1.25  # how often more an element of one pass counts than one of another
_UNEQUAL_REST = 2.0  # the same where only the last pass before a step has fewer elements
_SCALED = frozenset(("SGD.step", "ASGD.step"))  # optimizers whose steps grow with the gradient
_LISTED = 6  # numbers of elements


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds means that are added up as they are, means over unequal numbers of elements, and passes without use."""
    if training.training.is_hidden:
        return
    by_site: dict[int, list[Accumulation]] = {}
    for found in accumulations(training.training):
        if all(loss.mean for loss in found.losses):
            by_site.setdefault(found.passes[0].site, []).append(found)
    for group in by_site.values():
        if _is_undivided(training, group):
            yield _undivided(training, max(group, key=lambda each: len(each.passes)))
        unequal = max(group, key=_ratio)
        is_odd = _ratio(unequal) >= (_UNEQUAL_REST if all(map(_is_rest, group)) else _UNEQUAL)
        if is_odd and _is_share(training, unequal, group) and not are_weighted(training.facts, unequal.passes):
            yield _unequal(training, unequal)
    for discarded in discarded_passes(training.training) if is_complete(training.facts.trace) else ():
        yield _discarded(training, discarded)


def _is_undivided(training: MeasuredTraining, group: Sequence[Accumulation]) -> bool:
    """Returns whether two steps or more used sums of means without a factor. Hooks of parameters may have divided."""
    plain = all(loss.factor in (1, -1) for each in group for loss in each.losses)
    registered = training.facts.trace.callbacks.registrations
    hooked = {each.target for each in registered if each.kind == "tensor hook"}
    changed = any(each.is_changed or hooked & set(each.step.parameters) for each in group)
    if len(group) < 2 or not plain or changed or are_weighted(training.facts, group[0].passes):
        return False
    are_single = all(loss.elements == 1 for each in group for loss in each.losses)
    is_scaled = group[0].step.op in _SCALED and not _has_divided_rate(training, group[0])
    return is_scaled and not are_single and is_split_step(training.facts, group[0])


def _has_divided_rate(training: MeasuredTraining, found: Accumulation) -> bool:
    """Returns whether the line that makes the optimizer, or a name in it, has a quotient: the rate may be divided."""
    made = training.training.optimizer_call(found.step)
    node = None if made is None else training.facts.node_at(made.site)
    if node is None:
        return True
    names = [each.id for each in ast.walk(node) if isinstance(each, ast.Name)]
    given = [value for name in names if (value := only_value(training.facts, name)) is not None]
    return any(isinstance(each, ast.Div) for part in (node, *given) for each in ast.walk(part))


def _is_share(training: MeasuredTraining, found: Accumulation, group: Sequence[Accumulation]) -> bool:
    """Returns whether the passes are parts of the work of one step: of one tensor, or each loss has a factor, and a
    condition decides when to step, or most steps have other sizes, as of batches of texts.

    Sets, scales or episodes may count alike on purpose, whatever their sizes.
    """
    has_factor = all(loss.factor not in (1, -1) for loss in found.losses)
    if has_factor and _are_mixed(training, found, group):
        return True
    return is_split_step(training.facts, found) and (has_factor or use_parts(training.facts, found.passes))


def _are_mixed(training: MeasuredTraining, found: Accumulation, group: Sequence[Accumulation]) -> bool:
    """Returns whether the variable of a loop slices the data of a step, or most steps have passes of other sizes and no
    loop over a dict or over written values makes them."""
    span = training.facts.span(found.passes[0].site)
    loop = None if span is None else loop_around_line(training.facts, span.file, span.line)
    if not isinstance(loop, ast.For) or isinstance(loop.iter, ast.Tuple | ast.List):
        return False
    sizes = {tuple(loss.elements for loss in each.losses) for each in group}
    is_named = any(called_name(each) in ("items", "values", "keys") for each in ast.walk(loop.iter))
    slices = (each for part in loop.body for each in ast.walk(part) if isinstance(each, ast.Slice))
    is_sliced = any(last_name(each) == last_name(loop.target) != "" for part in slices for each in ast.walk(part))
    return is_sliced or (2 * len(sizes) > len(group) > 1 and not is_named)


def _ratio(found: Accumulation) -> float:
    """Returns how often more an element counts in the smallest mean than in the largest; 1 if factors differ."""
    sizes = [loss.elements for loss in found.losses]
    if len({loss.factor for loss in found.losses}) > 1 or min(sizes) <= 0:
        return 1
    return max(sizes) / min(sizes)


def _is_rest(found: Accumulation) -> bool:
    """Returns whether only the last of several passes is over fewer elements, as the last batch of the data may be."""
    *sizes, last = [loss.elements for loss in found.losses]
    return len(sizes) > 1 and len(set(sizes)) == 1 and last <= sizes[0]


def _undivided(training: MeasuredTraining, found: Accumulation) -> StandingOut:
    count, facts = len(found.passes), training.facts
    return stands_out(
        f"{count} backward passes add up before a step, each of a mean, and no loss is divided by {count}: "
        f"the step uses the sum of {count} means",
        facts.label("accumulated_here", found.passes[0].site, "the gradients add up"),
        facts.label("needed_here", found.step.site, "the step"),
    )


def _unequal(training: MeasuredTraining, found: Accumulation) -> StandingOut:
    facts, sizes = training.facts, [loss.elements for loss in found.losses]
    listed = [f"{size:,.6g}" for size in sizes]
    text = f"{', '.join(listed[:-1])} and {listed[-1]}" if len(sizes) <= _LISTED else (
        f"{min(sizes):,.6g} to {max(sizes):,.6g}")  # fmt: skip
    return stands_out(
        f"{len(sizes)} backward passes add up before a step with equal weights, each of a mean, over {text} elements: "
        f"an element of the smallest counts {_ratio(found):.3g} times as much as one of the largest",
        facts.label("accumulated_here", found.passes[0].site, "the gradients add up"),
        facts.label("needed_here", found.step.site, "the step"),
    )


def _discarded(training: MeasuredTraining, found: Discarded) -> StandingOut:
    facts = training.facts
    return stands_out(
        f"the gradients of {found.count} of {found.total} backward passes are cleared before a step uses them",
        facts.label("accumulated_here", found.site, "the pass"),
        facts.label("cleared_here", found.cleared, "cleared here"),
    )
