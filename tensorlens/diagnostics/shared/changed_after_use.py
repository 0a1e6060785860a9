"""Explains a tensor whose history or memory changed between the forward pass and the backward that needs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tensorlens.analysis.changed_after_use import ChangedAfterUse, StateChange, changed_after_use
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.kept import operation
from tensorlens.diagnostics.shared.wording import as_written, finding, fix, named, op_text, severity_of
from tensorlens.records.model import Failure
from tensorlens.records.report import Diagnostic, Edit, Label

_MOST = 3  # lines that changed a tensor

Words = tuple[str, str, str]  # title, why, text of the change
Advice = tuple[str, str]  # a help, and the role of the line that it changes
Edits = Callable[[TraceIndex, ChangedAfterUse], tuple[Edit, ...]]


def overtaken_before_backward(
    code: str, changed: StateChange, roles: tuple[str, ...], words: Words, *fixes: Advice, edits: Edits | None = None
) -> Callable[[TraceIndex], Iterator[Diagnostic]]:
    """Makes the `find` of a code.

    `changed` tests the states before and after a call for the change in question. The words and fixes are templates
    with the fields {name}, {op} and {code}: the change as the script writes it. `edits` makes those of the first fix.
    """

    def find(facts: TraceIndex) -> Iterator[Diagnostic]:
        for failure in facts.failures(code):
            several = changed_after_use(facts, failure, changed) if _in_backward(failure) else []
            if not several:
                continue
            replaced = several[0]
            fields = {
                "name": named(facts, replaced.tensor, replaced.use.index),
                "op": op_text(replaced.change.op),
                "code": as_written(facts, replaced.change),
            }
            title, why, what = (text.format(**fields) for text in words)
            labels = [*_labels(facts, failure, replaced, roles, what), *_others(facts, several[1:_MOST], words[2])]
            places = {label.role: label.span for label in labels if label is not None}
            made = () if edits is None else edits(facts, replaced)
            yield finding(
                code,
                severity_of(failure),
                title,
                why,
                labels,
                fixes=tuple(
                    fix(text.format(**fields), *(() if position else made), place=places.get(role))
                    for position, (text, role) in enumerate(fixes)
                ),
                evidence={"tensor": fields["name"], "message": failure.message},
            )

    return find


def _others(facts: TraceIndex, several: list[ChangedAfterUse], text: str) -> Iterator[Label | None]:
    """Labels the other lines that changed a tensor which backward needs: it may have stopped at any of them."""
    for each in several:
        name = named(facts, each.tensor, each.use.index)
        yield facts.label("modified_here", each.change.site, text.format(name=name))


def _in_backward(failure: Failure) -> bool:
    return failure.op is not None and failure.op.endswith(("backward", "autograd.grad"))


def _labels(
    facts: TraceIndex, failure: Failure, replaced: ChangedAfterUse, roles: tuple[str, ...], what: str
) -> Iterator[Label | None]:
    name = named(facts, replaced.tensor, replaced.use.index)
    yield facts.label("needed_here", failure.site, "needs it as it was")
    yield facts.label("modified_here", replaced.change.site, what)
    for role in roles:
        if role == "leaf_made_here":
            made = facts.first_use(replaced.tensor)
            yield facts.label(role, None if made is None else made.site, f"{name} is a leaf here")
        else:
            yield facts.label(role, replaced.use.site, f"{operation(facts, replaced.use)} uses {name} as it is here")
