"""Restricts the findings of a sampled run to what its recorded steps establish.

A stretch of recorded steps has every event from its beginning on, so what a finding says of tensors and nodes that were
made there is as true as in a complete recording. Finders that ask about the whole run (what never happened, what
happened first or last, how often) find nothing in such a run.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.sampled_run import Sampling, Stretch, is_in
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.unexplained import inputs_of
from tensorlens.diagnostics.shared.wording import finding, fix, op_text
from tensorlens.records.error_messages import entry
from tensorlens.records.model import Failure
from tensorlens.records.report import Diagnostic
from tensorlens.records.source import one_line

SILENT = frozenset(
    {
        "ctx-attribute-bypasses-version-check",
        "custom-function-integer-gradient-truncated",
        "custom-function-none-gradient",
        "infinite-or-nan-gradient-at-boundary",
        "nan-gradient-from-unselected-branch",
        "unversioned-write-to-saved-tensor",
    }
)
"""Silent mistakes that one recorded pass shows: their finders ask about nothing before the step or after it."""

OF_GRAPH = frozenset(
    {
        "backward-on-non-tensor",
        "backward-through-freed-graph",
        "element-does-not-require-grad",
        "index-zero-dim-loss",
        "input-does-not-require-grad",
        "multi-output-view-modified-inplace",
        "saved-tensor-detached-inplace",
        "saved-tensor-modified-inplace",
        "unused-input-in-grad",
    }
)
"""Errors whose finders ask only about the graph of the failing call. Those of other errors may ask about the run."""

_OF_ORIGINS = frozenset({"element-does-not-require-grad", "input-does-not-require-grad"})
_PAGE_FAMILIES = frozenset({"backward_call", "custom_functions", "inplace_and_views", "requires_grad", "saved_tensors"})
"""Families whose pages without a finder name only lines of the failing call's own tensors."""
MAX_STRETCHES = 12
MAX_TENSORS = 5_000
_LONG = 160


def stretches_of(sampling: Sampling) -> list[Stretch]:
    """Returns the stretches that findings are searched in: the first, and the last ones of a run with many."""
    stretches = list(sampling.stretches)
    return stretches if len(stretches) <= MAX_STRETCHES else [stretches[0], *stretches[1 - MAX_STRETCHES :]]


def may_explain(facts: TraceIndex, failure: Failure, stretch: Stretch) -> bool:
    """Returns whether a stretch has all that the finder of a failure asks about.

    `facts` are those of the stretch. It has everything of the run's beginning. Of a later stretch, the failing call's
    graph must have been made in it.
    """
    if not stretch.start:
        return True
    known = entry(failure.kind)
    if known is None or (known.code not in OF_GRAPH if known.finder else known.family not in _PAGE_FAMILIES):
        return False
    saved = (facts.call_of_node(each.sequence, failure.index) for each in failure.saved)
    if not all(call is not None and call.index >= stretch.start for call in saved):
        return False
    queue, seen = [access.tensor for access in failure.inputs], set[int]()
    while queue and len(seen) < MAX_TENSORS:
        number = queue.pop()
        if number in seen:
            continue
        seen.add(number)
        state = facts.state(number, failure.index)
        is_inner = state is not None and state.requires_grad and not state.is_leaf
        made = facts.creator(number)
        if made is None and (is_inner or state is None or known.code in _OF_ORIGINS):
            return False
        if made is not None and made.index < stretch.start and is_inner:
            return False
        if state is not None and state.is_leaf and state.requires_grad:
            continue  # what was written to a leaf, such as gradients by an optimizer, is no part of the graph
        for call in facts.producers(number, failure.index):
            if call.index >= stretch.start:
                queue += [access.tensor for access in call.inputs]
    return not queue


def find_unrecorded(facts: TraceIndex, sampling: Sampling, failure: Failure) -> Iterator[Diagnostic]:
    """Reports the exception that ended a sampled run, if the recorded steps do not explain it."""
    step = sampling.ended + 1
    first_line = next(iter(failure.message.strip().splitlines()), "")
    last = sampling.stretches[-1]
    is_recorded = sampling.is_recording and is_in(last, failure.index)
    why = (
        f"the steps before step {last.first:,} were not all recorded, and what it needs may be from there"
        if is_recorded
        else f"step {step:,} was not recorded: only its traceback is known"
    )
    known = entry(failure.kind)
    page = () if known is None else (fix(f"`tensorlens errors {known.code}` explains this message"),)
    if is_recorded and known is None and not failure.op:
        why = ""  # the program raised it: no earlier step has more to say
    wanted = f":{step}" if is_recorded and last.first < step else f"{max(step - 1, 1)}:{step}"
    which = "all steps up to this one" if wanted.startswith(":") else "this step and the one before"
    yield finding(
        "uncaught-exception",
        "error",
        one_line(f"{failure.type}: {first_line}" if first_line else failure.type, _LONG),
        why,
        [
            facts.label(
                "rejected_here", failure.site, f"raised by {op_text(failure.op)}" if failure.op else "raised here"
            ),
            *(inputs_of(facts, failure) if is_recorded else ()),
        ],
        notes=() if failure.site is not None else ("it was raised outside the script's own files",),
        fixes=(*((fix(f'record {which}: `--steps {wanted}`, or `trace(steps="{wanted}")`'),) if why else ()), *page),
        evidence={"type": failure.type, "message": failure.message, "op": failure.op, "step": step},
    )
