"""Explains a checkpointed function that did something else when backward ran it again."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.contexts import changes_between_runs, failed_backward, last_recomputed_checkpoint
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.checkpoint._second_run import Cache, cache_around, first_run_only
from tensorlens.diagnostics.shared.wording import finding, fix, severity_of
from tensorlens.records.model import Change, Failure, Region
from tensorlens.records.report import Diagnostic, Fix, Label

MAX_CHANGES = 4


def find_rerun(facts: TraceIndex, code: str, title: str, why: str) -> Iterator[Diagnostic]:
    """Reports the failures of `code`: the checkpoint, the backward pass that ran it again, and what had changed."""
    for failure in facts.failures(code):
        checkpoint = last_recomputed_checkpoint(facts, failure)
        changed = [] if checkpoint is None else changes_between_runs(facts, checkpoint, failure.index)
        known = changed[:MAX_CHANGES]
        skipped = None if checkpoint is None else first_run_only(facts, failure)
        cached = None if skipped is None else cache_around(facts, skipped)
        notes = [_was(change) for change in known if change.site is None]
        if not changed and skipped is None:
            notes.append("what changed in between is not known: no global, outer variable or module flag that it reads")
        if len(changed) > MAX_CHANGES:
            more = len(changed) - MAX_CHANGES
            notes.append(f"{more} more {'value' if more == 1 else 'values'} that it reads changed as well")
        yield finding(
            code,
            severity_of(failure),
            title,
            why,
            [*_skipped(facts, None if changed else skipped, cached), *_labels(facts, failure, checkpoint, known)],
            notes=tuple(notes),
            fixes=tuple(_fixes(facts, checkpoint, changed, cached)),
            evidence={change.name: [change.before, change.after] for change in changed},
        )


def _labels(
    facts: TraceIndex, failure: Failure, checkpoint: Region | None, changed: list[Change]
) -> Iterator[Label | None]:
    for change in changed:
        yield facts.label("state_changed_here", change.site, _was(change))
    if checkpoint is not None:
        yield facts.label("called_here", checkpoint.site, "first run, in the forward pass")
    backward = failed_backward(facts, failure)
    yield facts.label("needed_here", failure.site if backward is None else backward.site, "second run, in backward")
    if backward is not None and backward.site != failure.site:
        yield facts.label("rejected_here", failure.site, "PyTorch stops here, in the second run")


def _skipped(facts: TraceIndex, site: int | None, cached: Cache | None) -> Iterator[Label | None]:
    if site is not None:
        text = "runs in the first run only"
        yield facts.label("state_changed_here", site, text if cached is None else f"{text}: it sets `{cached.name}`")


def _fixes(facts: TraceIndex, checkpoint: Region | None, changed: list[Change], cached: Cache | None) -> Iterator[Fix]:
    site = next((change.site for change in changed if change.site is not None), None)
    if changed and all(change.name.endswith(".training") for change in changed):
        yield fix("switch between `train()` and `eval()` only after the backward pass", place=facts.span(site))
        return
    if cached is not None and cached.edit is not None:
        text = f"compute `{cached.name}` again wherever operations are recorded: both runs then do the same"
        yield fix(text, cached.edit, place=cached.edit.span)
    call = None if checkpoint is None else facts.span(checkpoint.site)
    begin = "" if cached is None or cached.edit is None else "or "
    yield fix(
        f"{begin}pass what may change as an argument: a checkpoint keeps its arguments, and reads all else again",
        place=call,
    )
    yield fix("or change it only after the backward pass", place=facts.span(site))


def _was(change: Change) -> str:
    return f"`{change.name}` changed from {change.before} to {change.after}"
