"""Finds the cause of `index-zero-dim-loss`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.wording import finding, fix, named, severity_of, with_method
from tensorlens.records.model import Call
from tensorlens.records.report import Diagnostic

CODE = "index-zero-dim-loss"


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    for failure in facts.failures(CODE):
        number = failure.inputs[0].tensor if failure.inputs else None
        if number is None or facts.tensor(number).shape:
            continue
        made = _computed(facts, number, failure.index)
        name = named(facts, number, failure.index)
        what = named(facts, made.outputs[0].tensor) if made is not None and made.outputs else name
        yield finding(
            CODE,
            severity_of(failure),
            f"{name} is a single number, and `[...]` was used on it",
            "its shape is `[]`: there are no elements to choose from",
            [
                facts.label("rejected_here", failure.site, "nothing to choose from here"),
                None
                if made is None
                else facts.label("value_made_here", made.site, f"{what} is a single number from here on"),
            ],
            fixes=(fix(f"read the number: {with_method(what, 'item()')}", place=facts.span(failure.site)),),
            evidence={"tensor": name},
        )


def _computed(facts: TraceIndex, number: int, before: int) -> Call | None:
    """Finds the call that computed the value: `.data` and `detach()` only make another tensor on the same memory."""
    made = next(iter(facts.producers(number, before)), None) or facts.first_use(number)
    while made is not None and len(made.inputs) == 1:
        source = made.inputs[0].tensor
        if source == number or facts.tensor(source).storage != facts.tensor(number).storage:
            break
        number, made = source, next(iter(facts.producers(source, made.index)), None) or facts.first_use(source)
    return made
