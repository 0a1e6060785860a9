"""The finder that many entries share: PyTorch refused, or warned, on the spot, and here is where what it refused came
from.

A file says which roles its cause has and how to put it; `rejected` finds the line of each role (`provenance`) from the
facts of the failing call: the leaf, the view, the non-leaf or the value among its tensors, and the call that made it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tensorlens.analysis.contexts import recomputing_checkpoint
from tensorlens.analysis.lineage import find_cut
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.graph_cuts import cut_labels
from tensorlens.diagnostics.shared.rejected_call import LabelledSite, RejectedCall
from tensorlens.diagnostics.shared.roles import (
    contexts,
    custom_functions,
    function_arguments,
    graph,
    hooks,
    objects,
    tensors,
)
from tensorlens.diagnostics.shared.roles.tensors import needed
from tensorlens.diagnostics.shared.wording import finding, fix, op_text, severity_of
from tensorlens.records.error_messages import classify
from tensorlens.records.model import Backward, Failure, Notice
from tensorlens.records.report import Diagnostic, Label


def _returned(refusal: RejectedCall) -> LabelledSite | None:
    """What handed back the wrong value: a callback that the engine ran, else the function that was given to torch."""
    return hooks.returned(refusal) or function_arguments.returned_by_function(refusal)


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


def rejected(
    code: str,
    roles: tuple[str, ...],
    title: str,
    why: str,
    *fixes: str,
    when: Callable[[RejectedCall], bool] = lambda refusal: True,
) -> Callable[[TraceIndex], Iterator[Diagnostic]]:
    """A `find` for `code`. The first role's line is the primary one. `when` confirms, by facts, a code whose message
    other mistakes share. `title`, `why` and the fixes are templates with the fields {op} and, for each role, its
    tensor: {leaf}, {nonleaf}, {view}, {base}, {value}, {graph}; of a callback those of
    `callbacks.words`."""

    def find(facts: TraceIndex) -> Iterator[Diagnostic]:
        for refusal in filter(when, refusals(facts, code)):
            yield tell(refusal, code, roles, (title, why, fixes))

    return find


def tell(
    refusal: RejectedCall, code: str, roles: tuple[str, ...], words: tuple[str, str, tuple[str, ...]]
) -> Diagnostic:
    """The diagnostic of one refusal."""
    title, why, fixes = words
    labels, fields = labels_of(refusal, roles)
    known = _Fields(fields)
    return finding(
        code,
        refusal.severity,
        known.fill(title),
        known.fill(why),
        labels,
        fixes=tuple(fix(known.fill(text)) for text in fixes),
        evidence={"op": refusal.op, "message": refusal.message},
    )


def labels_of(refusal: RejectedCall, roles: tuple[str, ...]) -> tuple[list[Label | None], dict[str, str]]:
    """The labels of the roles whose lines the facts give, and for each the name of its tensor."""
    facts = refusal.facts
    fields = {"op": op_text(refusal.op) if refusal.op else "this"}
    labels: list[Label | None] = []
    for role in roles:
        if role == "graph_cut_here":
            labels += _cut(refusal)
            continue
        found = ROLES[role](refusal) if role in ROLES else None
        if found is not None:
            labels.append(facts.label(role.partition(":")[0], found.site, found.text))
            if role == "rejected_here" and recomputing_checkpoint(facts, refusal.index) is not None:
                again = needed(refusal)
                labels.append(None if again is None else facts.label("needed_here", again.site, again.text))
            if role == "modified_here" and found.site != refusal.site:
                labels.append(facts.label("needed_here", refusal.site, f"{op_text(refusal.op)} needs it afterwards"))
            fields[role.split("_")[0]] = refusal.name(found.tensor)
    if any(role in hooks.ROLES or role in custom_functions.ROLES for role in roles):
        fields |= hooks.words(refusal)
    return labels, fields


def _cut(refusal: RejectedCall) -> list[Label | None]:
    """The cut above the call's first tensor and the switch behind it, or the call itself if it takes a value out."""
    facts, site = refusal.facts, refusal.site
    if not refusal.inputs:
        return []
    asked = _asked(refusal)
    number = refusal.inputs[0].tensor if asked is None else asked
    if facts.requires_grad(number, refusal.index):
        text = f"{op_text(refusal.op)} takes the value of {refusal.name(number)} out of the graph"
        return [facts.label("graph_cut_here", site, text)]
    labels = list(cut_labels(facts, find_cut(facts, number, refusal.index)))
    if labels:
        return [label for label in labels if label is not None and label.role != "leaf_made_here"]
    use = facts.first_use(number)
    text = f"{refusal.name(number)} is made here and does not require grad"
    return [None if use is None else facts.label("graph_cut_here", use.site, text)]


def _asked(refusal: RejectedCall) -> int | None:
    """Of the tensors that a backward pass was asked about by name, the first that does not require grad."""
    backward = refusal.facts.event(refusal.index)
    asked = backward.inputs if isinstance(backward, Backward) and refusal.failure is not None else ()
    return next((number for number in asked if not refusal.facts.requires_grad(number, refusal.index)), None)


class _Fields(dict[str, str]):
    """Template fields; one whose tensor was not found reads "the tensor"."""

    def __missing__(self, key: str) -> str:
        return "the tensor"

    def fill(self, template: str) -> str:
        """The template with its fields; "{leaf}`.clone()`" becomes one piece of code, "`weight.clone()`"."""
        return template.format_map(self).replace("``", "")


def refusals(facts: TraceIndex, code: str) -> Iterator[RejectedCall]:
    """The failures and the warnings of a code; a warning repeated at the same line counts once."""
    for failure in facts.failures(code):
        yield of_failure(facts, failure)
    seen: set[int | None] = set()
    for notice in facts.notices():
        if notice.site not in seen and classify(notice.message) == code:
            seen.add(notice.site)
            yield of_notice(facts, notice)


def of_failure(facts: TraceIndex, failure: Failure) -> RejectedCall:
    """A failing call, seen as a refusal."""
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
    """A warning is emitted during a call or a backward pass, whose row follows at the same site."""
    during = next((b for b in facts.backwards if b.started <= notice.index < b.index and b.site == notice.site), None)
    call = during or next((e for e in facts.calls if e.index > notice.index and e.site == notice.site), None)
    inputs = () if call is None else call.roots if isinstance(call, Backward) else call.inputs
    op = "" if call is None else call.op
    return RejectedCall(facts, notice.index, notice.site, op, notice.message, inputs, "warning", values=notice.values)
