"""Explains a rejected call, or a warning, from the front matter of its page.

The page lists the roles that lines play in the cause, and has the text of the finding. `find_rejected` finds the line
of each role in the facts of the rejected call: where its leaf, view, non-leaf or value was made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import zip_longest

from tensorlens.analysis.contexts import recomputing_checkpoint
from tensorlens.analysis.lineage import find_cut
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.graph_cuts import cut_labels, cutting_text
from tensorlens.diagnostics.shared.rejected_call import LabelledSite, RejectedCall
from tensorlens.diagnostics.shared.rejected_edits import EDITS
from tensorlens.diagnostics.shared.roles import (
    contexts,
    custom_functions,
    function_arguments,
    graph,
    hooks,
    objects,
    tensors,
)
from tensorlens.diagnostics.shared.roles.inference import made_in_inference
from tensorlens.diagnostics.shared.roles.tensors import needed
from tensorlens.diagnostics.shared.wording import finding, fix, op_text, severity_of
from tensorlens.records.error_messages import Entry, FindingText, classify
from tensorlens.records.model import Backward, Failure, Notice, Span
from tensorlens.records.report import Diagnostic, Fix, Label
from tensorlens.records.source import line_at


def _returned(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the `return` of the rejected value: in a callback that the engine ran, else in a function passed to
    torch."""
    return hooks.returned(rejected) or function_arguments.returned_by_function(rejected)


ROLES = {
    **tensors.ROLES,
    **graph.ROLES,
    **objects.ROLES,
    **function_arguments.ROLES,
    **contexts.ROLES,
    **hooks.ROLES,
    **custom_functions.ROLES,
    "returned_here": _returned,
}


_CUT = "graph_cut_here"  # not in `ROLES`, because it may have several labels
SEARCHED_ROLES = frozenset({_CUT, *ROLES})

CONDITIONS: dict[str, Callable[[RejectedCall], bool]] = {
    "": lambda rejected: True,
    "backward": RejectedCall.is_backward,
    "in_place": RejectedCall.is_inplace,
    "callback_not_callable": hooks.not_callable,
    "forward_not_callable": custom_functions.forward_not_callable,
    "function_not_called": custom_functions.not_called,
    "own_code": RejectedCall.is_of_own_code,
}
"""Tests that confirm a code if other mistakes share its message, by the `when` of the page's front matter."""

HARMLESS: dict[str, Callable[[RejectedCall], bool]] = {"no_history_to_lose": RejectedCall.has_no_history_to_lose}
"""Tests whether a warning of PyTorch is about nothing, by the first of `harmless` in the page's front matter."""


def find_rejected(facts: TraceIndex, known: Entry) -> Iterator[Diagnostic]:
    """Makes the findings of a code whose page has the text of the finding.

    The label of the first role is the primary one. A help that carries an edit goes before those that do not. Title,
    why, help and detail are templates. Their fields are {op}, {code} (the rejected call as the script writes it) and,
    for each role, its tensor: {leaf}, {nonleaf}, {view}, {base}, {value}, {graph}; for a callback also those of
    `hooks.words`.
    """
    text = known.finding
    if text is None:
        return
    for rejected in filter(CONDITIONS[text.when], rejected_calls(facts, known.code)):
        yield report_rejected(rejected, known, text)


def report_rejected(rejected: RejectedCall, known: Entry, text: FindingText) -> Diagnostic:
    """Makes the diagnostic of one rejected call, with a label for each role of its code."""
    labels, fields = labels_of(rejected, known.roles)
    template = _Fields(fields | {"code": rejected.written()})
    evidence = {"op": rejected.op, "message": rejected.message}
    if text.harmless and HARMLESS[text.harmless[0]](rejected):
        title, why = map(template.fill, text.harmless[1:])
        return finding(known.code, "note", title, why, labels, evidence=evidence)
    fixes = [
        _fix(rejected, template.fill(words), _place(rejected, labels, role, words), edit)
        for words, role, edit in zip_longest(text.help, text.help_at, text.edits, fillvalue="")
    ]
    return finding(
        known.code,
        rejected.severity,
        template.fill(text.title),
        template.fill(text.why),
        labels,
        fixes=tuple(sorted(fixes, key=lambda each: not each.edits)),
        evidence=evidence,
        detail=(template.fill(text.detail),) if text.detail else (),
    )


def _fix(rejected: RejectedCall, words: str, place: Span | None, edit: str) -> Fix:
    edits = EDITS[edit](rejected, place) if edit and place is not None else None
    return fix(words, *(edits or ()), place=place)


def _place(rejected: RejectedCall, labels: list[Label | None], role: str, words: str) -> Span | None:
    """Returns the line of a role, for a help that changes it; None if the page names no role or it was not found.

    If the help names a tensor of the rejected call, it is the innermost line that calls it so: the rejected line, or a
    line that called its function with the tensor as an argument.
    """
    found = next((label for label in labels if label is not None and label.role == role), None)
    if found is None or found.site is None or found.site != rejected.site or "{value}" not in words:
        return None if found is None else found.span
    facts, number = rejected.facts, rejected.inputs[0].tensor if rejected.inputs else None
    made = made_in_inference(rejected)
    name = "" if number is None else facts.name(number if made is None else made, rejected.index)
    for site in facts.call_chain(found.site):
        span = facts.span(site)
        if span is not None and _mentions(facts.trace.sources.get(span.file, ""), span.line, name):
            return span
    return found.span


def _mentions(source: str, line: int, name: str) -> bool:
    """Returns whether a line of a source has a name as a word of its own."""
    return bool(name) and re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", line_at(source, line)) is not None


def labels_of(rejected: RejectedCall, roles: tuple[str, ...]) -> tuple[list[Label | None], dict[str, str]]:
    """Finds the line of each role, and the name of its tensor for the templates.

    Raises:
        KeyError: `ROLES` has no such role.
    """
    facts = rejected.facts
    fields = {"op": op_text(rejected.op) if rejected.op else "this"}
    labels: list[Label | None] = []
    for role in roles:
        if role == _CUT:
            labels += _cut(rejected)
            continue
        place = ROLES[role](rejected)
        if place is None and role == "modified_here":
            labels.append(facts.label("rejected_here", rejected.site, tensors.failing_call(rejected).text))
        if place is None:
            continue
        kind = role.partition(":")[0]
        label = facts.label(kind, place.site, place.text) if place.span is None else Label(kind, place.span, place.text)
        labels.append(label)
        if role == "rejected_here" and recomputing_checkpoint(facts, rejected.index) is not None:
            again = needed(rejected)
            labels.append(None if again is None else facts.label("needed_here", again.site, again.text))
        if role == "modified_here" and place.site != rejected.site:
            labels.append(facts.label("needed_here", rejected.site, f"{op_text(rejected.op)} uses it afterwards"))
        fields[role.split("_")[0]] = rejected.name(place.tensor)
    if any(role in hooks.ROLES or role in custom_functions.ROLES for role in roles):
        fields |= hooks.words(rejected)
    return labels, fields


def _cut(rejected: RejectedCall) -> list[Label | None]:
    """Labels the call that cut the graph before the rejected call's first tensor.

    If that tensor requires grad, the rejected call itself takes the value out of the graph.
    """
    facts, site = rejected.facts, rejected.site
    if not rejected.inputs:
        return []
    requested = _requested(rejected)
    number = rejected.inputs[0].tensor if requested is None else requested
    if facts.requires_grad(number, rejected.index):
        return [facts.label("graph_cut_here", site, cutting_text(rejected.op, rejected.name(number)))]
    labels = list(cut_labels(facts, find_cut(facts, number, rejected.index)))
    if labels:
        return [label for label in labels if label is not None and label.role != "leaf_made_here"]
    text = f"{rejected.name(number)} does not require grad"
    if rejected.failure is None:
        return [facts.label("graph_cut_here", site, text)]
    use = facts.first_use(number)
    return [None if use is None else facts.label("graph_cut_here", use.site, text)]


def _requested(rejected: RejectedCall) -> int | None:
    """Finds the first tensor among the `inputs` of a failed backward pass that does not require grad."""
    backward = rejected.facts.event(rejected.index)
    inputs = backward.inputs if isinstance(backward, Backward) and rejected.failure is not None else ()
    return next((number for number in inputs if not rejected.facts.requires_grad(number, rejected.index)), None)


class _Fields(dict[str, str]):
    """The fields of a template. A tensor that was not found is called "the tensor"."""

    def __missing__(self, key: str) -> str:
        return "the tensor"

    def fill(self, template: str) -> str:
        """Fills in a template; "{leaf}`.clone()`" becomes one piece of code, "`weight.clone()`"."""
        return template.format_map(self).replace("``", "")


def rejected_calls(facts: TraceIndex, code: str) -> Iterator[RejectedCall]:
    """Finds the failures and the warnings of a code; a warning repeated at the same line counts once."""
    for failure in facts.failures(code):
        yield of_failure(facts, failure)
    seen: set[int | None] = set()
    for notice in facts.notices():
        if notice.site not in seen and classify(notice.message) == code:
            seen.add(notice.site)
            yield of_notice(facts, notice)


def of_failure(facts: TraceIndex, failure: Failure) -> RejectedCall:
    """Describes a failed call as a `RejectedCall`."""
    inputs, op = failure.inputs, failure.op or ""
    raised = failure.stack[-1] if failure.stack and failure.stack[-1] != failure.site else None
    return RejectedCall(
        facts,
        failure.index,
        failure.site,
        op,
        failure.message,
        inputs,
        severity_of(failure),
        raised,
        failure,
        failure.values,
    )


def of_notice(facts: TraceIndex, notice: Notice) -> RejectedCall:
    """Describes a warning as a `RejectedCall`.

    The call that emitted it is a backward pass at the same site that was running, else the next recorded call there.
    """
    during = next((b for b in facts.backwards if b.started <= notice.index < b.index and b.site == notice.site), None)
    call = during or next((e for e in facts.calls if e.index > notice.index and e.site == notice.site), None)
    inputs = () if call is None else call.roots if isinstance(call, Backward) else call.inputs
    op = "" if call is None else call.op
    return RejectedCall(facts, notice.index, notice.site, op, notice.message, inputs, "warning", values=notice.values)
