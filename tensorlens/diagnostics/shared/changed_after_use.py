"""The finder of tensors that backward needs as they were, and that were made into something else in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tensorlens.analysis.changed_after_use import ChangedAfterUse, StateChange, changed_after_use
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.wording import finding, fix, named, op_text, severity_of
from tensorlens.records.model import Failure
from tensorlens.records.report import Diagnostic, Label

Words = tuple[str, str, str]  # title, why, what the change did


def overtaken_before_backward(
    code: str, changed: StateChange, roles: tuple[str, ...], words: Words, *fixes: str
) -> Callable[[TraceIndex], Iterator[Diagnostic]]:
    """A `find` for `code`. `changed` says of the state before and after a call whether this is the change meant; the
    words and fixes are templates with the fields {name} and {op}."""

    def find(facts: TraceIndex) -> Iterator[Diagnostic]:
        for failure in facts.failures(code):
            found = changed_after_use(facts, failure, changed) if _in_backward(failure) else None
            if found is None:
                continue
            fields = {"name": named(facts, found.tensor, found.use.index), "op": op_text(found.change.op)}
            title, why, what = (text.format(**fields) for text in words)
            yield finding(
                code,
                severity_of(failure),
                title,
                why,
                _labels(facts, failure, found, roles, what),
                fixes=tuple(fix(text.format(**fields)) for text in fixes),
                evidence={"tensor": fields["name"], "message": failure.message},
            )

    return find


def _in_backward(failure: Failure) -> bool:
    return failure.op is not None and failure.op.endswith(("backward", "autograd.grad"))


def _labels(
    facts: TraceIndex, failure: Failure, found: ChangedAfterUse, roles: tuple[str, ...], what: str
) -> Iterator[Label | None]:
    name = named(facts, found.tensor, found.use.index)
    yield facts.label("needed_here", failure.site, "backward needs it as it was")
    yield facts.label("modified_here", found.change.site, what)
    for role in roles:
        if role == "leaf_made_here":
            made = facts.first_use(found.tensor)
            yield facts.label(role, None if made is None else made.site, f"{name} is a leaf here")
        else:
            yield facts.label(role, found.use.site, f"{op_text(found.use.op)} is recorded with {name} as it is here")
