"""Finds the checkpoints of `checkpoint-no-input-requires-grad`, also those that PyTorch did not warn about again."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.edits.expressions import not_reentrant
from tensorlens.diagnostics.shared.rejected import rejected_calls
from tensorlens.diagnostics.shared.wording import finding, fix, named
from tensorlens.records.model import Call, Region, Span
from tensorlens.records.report import Diagnostic, Edit, Label
from tensorlens.records.source import text_of

CODE = "checkpoint-no-input-requires-grad"
_MAX_INPUTS, _MAX_CALLS = 2, 2  # labels


@dataclass(frozen=True, slots=True)
class _Run:
    """A run of a checkpoint none of whose inputs requires grad."""

    entered: Region
    inputs: tuple[int, ...]
    lost: Call | None  # the first call inside that would have been recorded; None: nothing, or gradients are off


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    """Reports all such checkpoints in one finding: Python shows PyTorch's warning only for the first."""
    warned = [rejected.site for rejected in rejected_calls(facts, CODE)]
    runs: dict[int | None, _Run] = {}
    for run in _runs(facts):
        if run.lost is not None or run.entered.site in warned:
            runs.setdefault(run.entered.site, run)
    losing = [run for run in runs.values() if run.lost is not None]
    if runs:
        yield _report(facts, losing) if losing else _harmless(facts, list(runs.values()))
    elif warned:
        yield _finding([facts.label("called_here", warned[0], _CALLED)], (), "any of its inputs", 0)


_CALLED = "the checkpoint is called here"


def _report(facts: TraceIndex, runs: list[_Run]) -> Diagnostic:
    first = runs[0]
    at = first.entered.index
    labels = [facts.label("called_here", run.entered.site, _CALLED) for run in runs[:_MAX_CALLS]]
    if first.lost is not None and not facts.same_line(first.lost.site, first.entered.site):
        labels.append(facts.label("value_made_here", first.lost.site, "runs inside it, and is not recorded"))
    labels += _made(facts, at, first.inputs)
    name = named(facts, first.inputs[0], at) if len(first.inputs) == 1 else "any of its inputs"
    edits = [not_reentrant(facts, facts.span(run.entered.site)) for run in runs]
    done = tuple(edit for edit in edits if edit is not None) if all(edits) else ()
    option = None if done else _option(facts, runs)
    if option is not None:
        labels.append(Label("flag_changed_here", option, "`use_reentrant=True` is set here"))
        done = (Edit(option, "use_reentrant=False"),)
    return _finding(labels, done, name, len(runs))


def _harmless(facts: TraceIndex, runs: list[_Run]) -> Diagnostic:
    return finding(
        CODE,
        "note",
        "no input of this checkpoint requires grad, and nothing inside it would be recorded either: "
        "PyTorch's warning is harmless here",
        "gradients are off, or nothing that the checkpoint computes with requires grad",
        [facts.label("called_here", run.entered.site, _CALLED) for run in runs[:_MAX_CALLS]],
        evidence={"checkpoints": len(runs)},
    )


def _finding(labels: list[Label | None], edits: tuple[Edit, ...], name: str, count: int) -> Diagnostic:
    place = labels[0].span if labels[0] is not None else None
    given = next((label.span for label in labels if label is not None and label.role == "flag_changed_here"), place)
    where = "here" if count < 2 or given is not place else f"in all {count} of these calls"
    return finding(
        CODE,
        "warning",
        "no input of this checkpoint requires grad, so nothing inside it is recorded",
        "a checkpoint with `use_reentrant=True` records its result only if one of its inputs requires grad",
        labels,
        fixes=(
            fix(
                f"pass `use_reentrant=False` {where}: it records what happens inside, whatever the inputs are",
                *edits,
                place=given,
            ),
            fix(f"or let {name} require grad before the call, with `requires_grad_()`", place=place),
        ),
        evidence={"checkpoints": count},
    )


def _runs(facts: TraceIndex) -> Iterator[_Run]:
    """Yields the runs of checkpoints with `use_reentrant=True` whose inputs do not require grad.

    The call of such a checkpoint is recorded next after the end of its function.
    """
    opened: list[tuple[Region, int]] = []
    calls: list[Call] = []  # those without gradient recording, inside any checkpoint
    clean: dict[int, int] = {}
    for event in facts.events:
        if isinstance(event, Call) and opened and event.mode == "no_grad":
            calls.append(event)
        if not isinstance(event, Region) or event.name != "checkpoint":
            continue
        if event.entering:
            opened.append((event, len(calls)))
        elif opened:
            entered, begun = opened.pop()
            made = facts.call(event.index + 1)
            if made is not None and made.op == "CheckpointFunction.apply" and made.site == entered.site:
                numbers = tuple(dict.fromkeys(access.tensor for access in made.inputs))
                if not any(facts.requires_grad(number, entered.index) for number in numbers):
                    lost = None if made.mode != "grad" else _first_lost(facts, calls, begun, clean)
                    yield _Run(entered, numbers, lost)


def _first_lost(facts: TraceIndex, calls: list[Call], begun: int, clean: dict[int, int]) -> Call | None:
    """Returns the first call from a place on that would have been recorded.

    `clean` leads over calls that were looked at for a checkpoint inside this one.
    """
    place = begun
    while place < len(calls):
        if place in clean:
            place = clean[place]
        elif _would_record(facts, calls[place]):
            break
        else:
            place += 1
    if place > begun:
        clean[begun] = place
    return calls[place] if place < len(calls) else None


def _would_record(facts: TraceIndex, call: Call) -> bool:
    return any(facts.requires_grad(access.tensor, call.index - 1) for access in call.inputs)


def _made(facts: TraceIndex, at: int, inputs: tuple[int, ...]) -> Iterator[Label | None]:
    for number in inputs[:_MAX_INPUTS]:
        made = next(iter(facts.producers(number, at)), None) or facts.first_use(number)
        text = f"{named(facts, number, at)} does not require grad"
        yield facts.label("value_made_here", None if made is None else made.site, text)


def _option(facts: TraceIndex, runs: list[_Run]) -> Span | None:
    """Returns the place of the only `use_reentrant=True` in all sources, if the checkpoints are called with
    `**options`."""
    for run in runs:
        node = facts.node_at(run.entered.site)
        if not isinstance(node, ast.Call) or all(keyword.arg is not None for keyword in node.keywords):
            return None
    given = [
        (file, keyword)
        for file, tree in facts.trees()
        for node in ast.walk(tree)
        for keyword in (node.keywords if isinstance(node, ast.Call) else ())
        if keyword.arg == "use_reentrant"
    ]
    if len(given) != 1 or not isinstance(given[0][1].value, ast.Constant) or given[0][1].value.value is not True:
        return None
    file, keyword = given[0]
    value = facts.span_of(keyword.value, file)
    column = value.column - len("use_reentrant=")
    begin = Span(file, value.line, column, value.end_line, value.end_column)
    return begin if text_of(facts.trace.sources[file], begin) == "use_reentrant=True" else None
