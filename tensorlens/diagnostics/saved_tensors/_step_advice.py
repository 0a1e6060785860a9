"""Advises on an optimizer step between a forward pass and its backward.

The later backward also reaches the parameters that the step owns. So moving the step alone would let it use gradients
of a second loss.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tensorlens.analysis.code_around import scope_around
from tensorlens.analysis.lineage import graph_leaves
from tensorlens.analysis.naming.places import place_of
from tensorlens.analysis.saved_tensors import Save, SavedTensorChange
from tensorlens.analysis.shared_frame import SharedFrame
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.timeline import training_of
from tensorlens.diagnostics.shared.edits.run_again import Rerun, RunAgain
from tensorlens.diagnostics.shared.edits.statements import moved_after
from tensorlens.diagnostics.shared.kept import line_from
from tensorlens.diagnostics.shared.parameter_copies import with_copied_parameters
from tensorlens.diagnostics.shared.wording import fix, named, source_text
from tensorlens.records.model import Call, Failure
from tensorlens.records.report import Edit, Fix

_MOST = 3  # helps


@dataclass(frozen=True, slots=True)
class Overwritten:
    """A change that overwrote parameters, the backward that needs them as they were, and what it needs."""

    change: Call
    failure: Failure
    frame: SharedFrame | None
    all_saved: SavedTensorChange

    @property
    def save(self) -> Save:
        return self.all_saved.save

    @property
    def saves(self) -> list[Save]:
        return [self.all_saved.save, *self.all_saved.others]

    @property
    def root(self) -> int | None:
        return self.failure.inputs[0].tensor if self.failure.inputs else None

    @property
    def at(self) -> int:
        """The site of the line to change."""
        return self.change.site if self.frame is None else self.frame.change


def fixes_of_a_step(facts: TraceIndex, case: Overwritten) -> Iterator[Fix]:
    """Suggests fixes for a step between a forward pass and its backward, those that keep all gradients first."""
    rerun = None if case.frame is None else Rerun(facts, case.failure, case.frame, begin_of(facts, case))
    made = -1 if case.save.call is None else case.save.call.index
    again = computed_again(facts, case, rerun)
    between = any(made < b.index < case.change.index and not b.failed for b in facts.backwards)
    older = None if between else _older_gradients(facts, case)
    if case.frame is not None and older is not None:
        yield _moved_below(facts, case, case.frame, older)
        yield replace(again, title=f"or {again.title}")
        return
    later = _only_later_layers(facts, case, rerun)
    is_exact = again.title.startswith("move") or (again.edits and rerun is not None and not rerun.is_random)
    copied = None if is_exact else with_copied_parameters(facts, case.saves, case.change.site, case.at)
    is_natural = later is not None and bool(later.edits)
    ordered = [later, again, copied] if is_natural and again.edits else [copied, again, later]
    if is_natural and not again.edits:
        ordered = [later, copied, again]
    found = [each for each in ordered if each is not None][:_MOST]
    if is_natural and again.edits:
        found = found[:2]  # two edits that move or repeat lines: a third one would make the finding too long
    yield from (replace(each, title=_with_or(each.title)) if at else each for at, each in enumerate(found))
    if len(found) == _MOST or (len(found) > 1 and len(found[0].edits) > 1):
        return  # the finding would be too long
    if case.frame is not None:
        yield _moved_with_inputs(facts, case, case.frame)


def _with_or(title: str) -> str:
    return title if title.startswith("if ") else f"or {title}"


def begin_of(facts: TraceIndex, case: Overwritten) -> int:
    """Returns the first event of the run of the line that changed the parameters: a loop there changes several."""
    first = case.change.index
    scope = facts.scope(case.change.site)
    lines = _lines_of(facts, case.at)
    for event in reversed(facts.events[: facts.trace.position(first)]):
        site = facts.trace.sites[event.site] if isinstance(event, Call) else None
        if site is None or place_of(site)[:2] != scope:
            break
        if case.at == case.change.site and not (lines[0] <= site.span.line <= lines[1]):
            break
        first = event.index
    return first


def end_of(facts: TraceIndex, case: Overwritten) -> int:
    """Returns the last event of the run of the line that changed the parameters."""
    last, lines = case.change.index, _lines_of(facts, case.at)
    scope = facts.scope(case.at)
    for event in facts.events[facts.trace.position(last) :]:
        if event.index >= case.failure.index or not isinstance(event, Call):
            break
        sites = facts.call_chain(event.site)
        spans = [facts.trace.sites[each].span for each in sites if facts.scope(each) == scope]
        if case.at not in sites and not any(lines[0] <= span.line <= lines[1] for span in spans):
            break
        last = event.index
    return last


def _lines_of(facts: TraceIndex, site: int) -> tuple[int, int]:
    """Returns the first and last line of the outermost loop or block of its function around a site."""
    span = facts.trace.sites[site].span
    for node in ast.walk(scope_around(facts, span.file, span.line)):
        if isinstance(node, ast.With | ast.For) and node.lineno <= span.line <= (node.end_lineno or 0):
            if not any(isinstance(each, ast.Attribute) and each.attr == "backward" for each in ast.walk(node)):
                return node.lineno, node.end_lineno or node.lineno
    return span.line, span.end_line


# --- the help ---------------------------------------------------------------------------------------------------------


def computed_again(facts: TraceIndex, case: Overwritten, rerun: Rerun | None) -> Fix:
    """Suggests to compute a loss from the new values."""
    loss = "the loss" if case.root is None else loss_name(facts, case.root, case.failure, case.frame)
    place = facts.span(case.at)
    found = None if rerun is None else rerun.edits()
    if found is not None:
        text = f"{_lines_text(found)} below this line: {loss} then uses the new values"
        return fix(text, *found.edits, place=place)
    below = "after this step" if case.frame is None else "below this line"
    made_in = _made_in(facts, case.root, case.at) if case.frame is not None and loss.startswith("`") else ""
    return fix(
        f"compute {loss}{made_in} {below}, with its whole forward pass: it then uses the new values", place=place
    )


def _lines_text(found: RunAgain) -> str:
    lines = [str(line) for line in found.lines]
    text = f"line {lines[0]}" if len(lines) == 1 else f"lines {', '.join(lines[:-1])} and {lines[-1]}"
    return f"move {text}" if found.all_move else f"run {text} again"


def _older_gradients(facts: TraceIndex, case: Overwritten) -> str | None:
    """Says what a step below the failed backward does with the gradients that it has where it is: " instead of older
    ones", or " too" if nothing clears them before that backward.

    None if another line computed them: the step is meant for these.
    """
    training, is_kept = training_of(facts), False
    for number in _owned(facts, case):
        cleared = training.last_moment(number, case.change.index, "clear")
        begin = -1 if cleared is None else cleared.index
        for moment in training.moments.get(number, ()):
            if moment.kind == "fill" and begin < moment.index < case.change.index:
                if moment.event.site != case.failure.site:
                    return None
                again = training.last_moment(number, case.failure.index, "clear")
                is_kept = is_kept or again is None or again.index < case.change.index
    return " too" if is_kept else " instead of older ones"


def _moved_below(facts: TraceIndex, case: Overwritten, frame: SharedFrame, older: str) -> Fix:
    where = line_from(facts, frame.backward, case.at)
    text = f"move `{source_text(facts, case.at)}` below {where}: it then uses the gradients of that backward{older}"
    edits: tuple[Edit, ...] | None = None
    one, other = facts.span(frame.change), facts.span(frame.backward)
    if one is not None and other is not None and frame.change == case.change.site:
        edits = moved_after(facts, one.file, one.line, other.line)
    return fix(text, *(edits or ()), place=facts.span(case.at))


def _owned(facts: TraceIndex, case: Overwritten) -> set[int]:
    """Returns the parameters that the step changed."""
    return {w.tensor for c in facts.calls if c.within and c.site == case.change.site for w in c.writes}


def detached_part(facts: TraceIndex, case: Overwritten, rerun: Rerun | None = None) -> RunAgain | None:
    """Finds what can run again from detached inputs, so that no gradient that a step uses changes.

    The loss trains only what follows the layers of the step, whose gradients are cleared before they are used again.
    """
    owned = _owned(facts, case)
    if case.frame is None or not _trains_only_later_layers(facts, case, owned):
        return None
    if not _clears_gradients(facts, case.change.site):
        return None
    return (rerun or Rerun(facts, case.failure, case.frame, begin_of(facts, case))).detached(owned)


def _only_later_layers(facts: TraceIndex, case: Overwritten, rerun: Rerun | None) -> Fix | None:
    """Suggests to detach what a loss gets from the parameters of the step, if it trains only what comes after them."""
    if case.root is None or not _trains_only_later_layers(facts, case, _owned(facts, case)):
        return None
    loss = loss_name(facts, case.root, case.failure, case.frame)
    found = None if rerun is None else detached_part(facts, case, rerun)
    if found is not None:
        text = f"run {_numbers(found)} again below this line, with detached input: {loss} then trains only what follows"
        return fix(text, *found.edits, place=facts.span(case.at))
    backward = f"`{source_text(facts, case.failure.site)}`"
    return fix(
        f"if {backward} is not to train {named(facts, case.save.tensor)}, run the layers behind it again on a detached "
        "input, for this loss only",
        place=facts.span(case.failure.site if case.frame is None else case.frame.backward),
    )


def _numbers(found: RunAgain) -> str:
    return _lines_text(found).partition(" ")[2].removesuffix(" again")


def _moved_with_inputs(facts: TraceIndex, case: Overwritten, frame: SharedFrame) -> Fix:
    where = line_from(facts, frame.backward, case.at)
    moved = f"or move `{source_text(facts, case.at)}` below {where}"
    if has_backward(facts, case.change, frame):
        text = f"{moved}, if it clears the gradients first: else its step also uses those of {where}"
    else:
        text = (
            f"{moved}, and give that backward `inputs=[...]`, without the parameters that the step changes: else the "
            "step uses the gradients of both losses"
        )
    return fix(text, place=facts.span(case.at))


# --- what the help rests on -------------------------------------------------------------------------------------------


def _clears_gradients(facts: TraceIndex, site: int) -> bool:
    """Returns whether the function of a step also calls `zero_grad()` of its optimizer: then gradients of a later loss
    never reach that step."""
    span = facts.trace.sites[site].span
    node = facts.names.syntax.node(span)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    owner = ast.unparse(node.func.value)
    return any(
        isinstance(each, ast.Attribute) and each.attr == "zero_grad" and ast.unparse(each.value) == owner
        for each in ast.walk(scope_around(facts, span.file, span.line))
    )


def _made_in(facts: TraceIndex, root: int | None, at: int) -> str:
    """Returns " (line 47)", the line that computes a loss or calls its function; "" if it is not known.

    If a line of the function that the reader is sent to ran it, it is that line.
    """
    made = None if root is None else facts.creator(root)
    if made is None:
        return ""
    site = facts.site_in(facts.scope(at), made.site)
    site = made.site if site is None else site
    return f" ({line_from(facts, site, at)})"


def loss_name(facts: TraceIndex, root: int, failure: Failure, frame: SharedFrame | None) -> str:
    """Returns the name of a loss in the function that the reader is sent to: a caller may name it otherwise."""
    if frame is None or frame.backward == failure.site:
        return named(facts, root, failure.index)
    made = facts.creator(root)
    name = facts.names.script_name(root, None if made is None else made.index)
    text = source_text(facts, frame.backward, 0)
    return f"`{name}`" if name and name in text else "that loss"


def _trains_only_later_layers(facts: TraceIndex, case: Overwritten, owned: set[int]) -> bool:
    """Returns whether a loss reaches parameters that the step does not own, all of them behind the saved tensor."""
    save = case.save
    result = None if save.call is None or not save.call.outputs else save.call.outputs[0].tensor
    if result is None or save.call is None or case.root is None:
        return False
    ahead = graph_leaves(facts, result, save.call.index + 1) | {access.tensor for access in save.call.inputs}
    others = graph_leaves(facts, case.root, case.failure.index) - owned
    return bool(others) and not others & ahead


def has_backward(facts: TraceIndex, call: Call, frame: SharedFrame) -> bool:
    """Returns whether the line to move also runs a backward pass: then it cannot move below the other one."""
    near = [b for b in facts.backwards if b.index < call.index and not b.failed]
    if not near or frame.change == call.site:
        return False
    span = facts.span(frame.change)
    runs = [facts.span(site) for site in facts.call_chain(near[-1].site)]
    return span is not None and any(s is not None and (s.file, s.line) == (span.file, span.line) for s in runs)
