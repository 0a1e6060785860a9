"""Finds the cause of `optimizer-holds-replaced-parameter`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.replaced_parameters import ReplacedParameter, replaced_parameters
from tensorlens.analysis.training.timeline import Training, training_of
from tensorlens.diagnostics.optimizers._remade import is_old_used, loaded_into, made_again, replacing_call
from tensorlens.diagnostics.optimizers._replaced_edits import gradients_passed_on, made_later, written_into
from tensorlens.diagnostics.shared.optimizers import optimizer_label, optimizer_name, several, titled
from tensorlens.diagnostics.shared.wording import finding, fix, source_text
from tensorlens.records.model import Span
from tensorlens.records.observations import Step
from tensorlens.records.report import Diagnostic, Fix

CODE = "optimizer-holds-replaced-parameter"
_FUNCTIONAL = "`torch.func.functional_call`"


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    training = training_of(facts)
    groups: dict[tuple[int | None, int | None], tuple[Step, list[ReplacedParameter]]] = {}
    for replaced, step in replaced_parameters(training):
        groups.setdefault((replaced.site, step.site), (step, []))[1].append(replaced)
    for step, group in groups.values():
        same = [other for there, other in groups.values() if there.parameters == step.parameters]
        if group[0].copied and _is_original_used(training, group):
            yield _report_copy(training, step, group)
        else:
            yield _report(training, step, group, same)


def _is_original_used(training: Training, group: list[ReplacedParameter]) -> bool:
    """Returns whether the program goes on with the original after a copy of it was made: it computes with it, or copies
    it again."""
    facts, first = training.facts, group[0]
    last_copied = max(replaced.index for replaced in group if replaced.old == first.old)
    later = (c for c in facts.calls if c.index > first.index and not c.within and c.nodes[1] > c.nodes[0])
    return last_copied > first.index or any(access.tensor == first.old for call in later for access in call.inputs)


def _report(
    training: Training, step: Step, group: list[ReplacedParameter], same: list[list[ReplacedParameter]]
) -> Diagnostic:
    facts, first = training.facts, group[0]
    new = sorted({replaced.new for replaced in group})
    (name, names), optimizer = titled(facts, new), optimizer_name(training, step)
    one, called = len(new) == 1, replacing_call(training, step, first.site)
    return finding(
        CODE,
        "warning",
        f"`{optimizer}` does not train {name}: it has what was there before",
        f"an optimizer keeps the parameters that it was given; it does not know the new {'one' if one else 'ones'}",
        [
            facts.label("replaced_here", first.site, "a copy, with parameters of its own" if first.copied
                        else f"a new parameter, unknown to `{optimizer}`" if one
                        else f"new parameters, unknown to `{optimizer}`"),
            None if called in (None, first.site)
            else facts.label("called_here", called, f"`{optimizer}` is not made again after this"),
            optimizer_label(training, step),
            facts.label("needed_here", step.site, f"finds no gradient in the old {'one' if one else 'ones'}"),
        ],
        fixes=tuple(sorted(_fixes(training, step, group, same), key=lambda each: not each.edits)),
        evidence={"parameters": sorted({facts.name(replaced.new) for replaced in group})},
        detail=names,
    )  # fmt: skip


def _fixes(
    training: Training, step: Step, group: list[ReplacedParameter], same: list[list[ReplacedParameter]]
) -> Iterator[Fix]:
    """Suggests the cures of all parameters of this optimizer that were replaced: `same` has those of each line."""
    facts, first = training.facts, group[0]
    optimizer, made = optimizer_name(training, step), training.optimizer_call(step)
    sites = {replaced.site for each in same for replaced in each if replaced.site is not None}
    span = facts.span(first.site)
    when = "" if span is None else f"line {span.line} has run"
    loaded = loaded_into(training, step, group) if len(same) == 1 else None
    if loaded is not None:
        yield fix(f"load the values into the old parameters: `{loaded[1]}`", loaded[0], place=span)
    target = _assigned_parameter(facts, group)
    targets = [] if target is None else [(each[0].site, _assigned_parameter(facts, each)) for each in same]
    writes = [None if name is None else written_into(facts, site, name) for site, name in targets]
    is_free = not any(is_old_used(facts, each) for each in same)
    written = [edit for edit in writes if edit is not None and None not in writes and is_free]
    later = made_later(training, step, sites)
    again = None if later or written else made_again(training, step, sites)
    if again is not None:
        yield fix(
            f"make `{optimizer}` again below this line: it then trains the new parameters, with a fresh state",
            again,
            place=facts.span(replacing_call(training, step, first.site)),
        )
    else:
        yield fix(
            f"make `{optimizer}` when {when or 'the new parameters exist'}, from the parameters that are then there",
            *later,
            place=None if made is None else facts.span(made.site),
        )
    if target is not None and is_free:
        yield fix(
            f"write into the old parameter instead, under `torch.no_grad()`: `{target}.copy_(...)`",
            *written,
            place=facts.span(first.site),
        )


def _assigned_parameter(facts: TraceIndex, group: list[ReplacedParameter]) -> str | None:
    """Returns what a line assigns to, `layer.weight`, if each old parameter could take the values of its new one."""
    first = group[0]
    if first.copied or first.site is None or len({replaced.index for replaced in group}) < len(group):
        return None
    fits = all(facts.tensor(r.old).shape == facts.tensor(r.new).shape for r in group)
    text = source_text(facts, first.site)
    name = facts.name(first.new).rpartition(".")[2]
    return text if fits and text.endswith(f".{name}") else None


def _report_copy(training: Training, step: Step, group: list[ReplacedParameter]) -> Diagnostic:
    """Reports gradients that were computed for copies, while the optimizer steps the originals."""
    facts, first = training.facts, group[0]
    filled = training.last_fill(first.new)
    runs = {facts.times_run(first.site, replaced.index)[0] for replaced in group if first.site is not None}
    own = [r for r in group if first.site is None or facts.times_run(first.site, r.index)[0] == min(runs)]
    copies, optimizer = several(facts, sorted({r.new for r in own})), optimizer_name(training, step)
    backward = None if filled is None else facts.span(filled.event.site)
    others = any(gradient is not None for gradient in step.gradients)
    of_what = f" of {several(facts, sorted({r.old for r in own}))}" if others else ""
    return finding(
        CODE,
        "warning",
        f"`{optimizer}.step()` finds no gradient{of_what}: backward computed those of a copy",
        "a copy has parameters of its own, and nothing leads from them back to the originals",
        [
            facts.label("replaced_here", first.site, f"a copy of what `{optimizer}` trains"),
            optimizer_label(training, step),
            None if filled is None
            else facts.label("accumulated_here", filled.event.site, "fills the gradients of the copy"),
            facts.label("needed_here", step.site, "the originals have no gradient"),
        ],
        fixes=tuple(_fixes_of_copy(training, group, backward)),
        evidence={"parameters": sorted({facts.name(replaced.new) for replaced in group})},
        detail=(f"the copy's parameters: {copies}" + (f"; {len(runs)} copies were made" if len(runs) > 1 else ""),),
    )  # fmt: skip


def _fixes_of_copy(training: Training, group: list[ReplacedParameter], backward: Span | None) -> Iterator[Fix]:
    place, passed_on = training.facts.span(group[0].site), gradients_passed_on(training, group)
    added = "the copy's gradients to those of the originals: this leaves out how the copy depends on them"
    if passed_on is not None:
        yield fix(f"let each pass add {added}", passed_on)
    yield fix(f"compute with the originals, without a copy: {_FUNCTIONAL} runs a module with other values", place=place)
    if passed_on is None:
        yield fix(f"or below this line add {added}", place=backward)
