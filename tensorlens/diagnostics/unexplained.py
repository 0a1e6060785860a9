"""What can be said of an exception that no finding explains: what failed, where, with which tensors."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.facts import Facts
from tensorlens.analysis.names import shape_text
from tensorlens.diagnostics.wording import finding, named, op_text
from tensorlens.messages import entry
from tensorlens.model import Diagnostic, Failure, Label

MAX_TENSORS = 4


def find_unexplained(facts: Facts, failure: Failure) -> Iterator[Diagnostic]:
    """The failure itself, the tensors that went into it, and where each of them came from."""
    first_line = failure.message.strip().splitlines()[0] if failure.message.strip() else ""
    title = f"{failure.type}: {first_line}" if first_line else failure.type
    by = f"raised by {op_text(failure.op)}" if failure.op else "raised by Python code"
    labels = [facts.label("rejected_here", failure.site, by), *inputs_of(facts, failure)]
    explanation = "" if failure.op is None else f"{op_text(failure.op)} refused what it was given"
    yield finding(
        _code(failure),
        "error",
        title,
        explanation,
        labels,
        notes=() if failure.site is not None else ("it was raised outside the script's own files",),
        evidence={"type": failure.type, "message": failure.message, "op": failure.op},
    )


def _code(failure: Failure) -> str:
    """The catalogue's code, unless its message is one that other mistakes share and no finder confirmed it."""
    known = entry(failure.kind)
    return "uncaught-exception" if known is None or known.generic else known.code


def inputs_of(facts: Facts, failure: Failure) -> list[Label | None]:
    """A label where each of the failing call's tensors was made, saying what it is."""
    labels: list[Label | None] = []
    for access in failure.inputs[:MAX_TENSORS]:
        tensor = facts.tensor(access.tensor)
        use = facts.maker(access.tensor)
        if use is None or use.site == failure.site:
            continue
        state = facts.state(access.tensor, failure.index)
        grad = ", requires grad" if state is not None and state.requires_grad else ""
        text = f"{named(facts, access.tensor, failure.index)} is made here: {shape_text(tensor)} {tensor.dtype}{grad}"
        labels.append(facts.label("value_made_here", use.site, text))
    return labels
