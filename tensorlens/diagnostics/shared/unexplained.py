"""Reports an exception that no finding explains: what failed, where, with which tensors."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.naming.names import shape_text
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.rejected import SEARCHED_ROLES, labels_of, of_failure
from tensorlens.diagnostics.shared.wording import finding, fix, named, op_text
from tensorlens.records.error_messages import Entry, entry
from tensorlens.records.model import Failure
from tensorlens.records.report import Diagnostic, Label
from tensorlens.records.source import one_line

MAX_TENSORS = 4
_LONG = 160  # characters of a message: the whole message is in the traceback
WORDS = {
    "returned_here": "the return statement with the wrong value",
    "function_defined_here": "where the function involved is defined",
    "hook_registered_here": "where the hook was registered",
    "state_changed_here": "what changed between the forward pass and its repetition",
    "mode_entered_here": "where the special mode was entered",
    "value_made_here": "where the offending value was made",
    "graph_built_here": "which operation recorded the part of the graph in question",
    "leaf_made_here": "which leaf is meant",
    "called_here": "which call of the function is meant",
}


def find_unexplained(facts: TraceIndex, failure: Failure) -> Iterator[Diagnostic]:
    """Reports the failure, its tensors, and the lines that made them."""
    first_line = failure.message.strip().splitlines()[0] if failure.message.strip() else ""
    title = one_line(f"{failure.type}: {first_line}" if first_line else failure.type, _LONG)
    known = entry(failure.kind)
    if known is not None and not known.generic and known.roles:
        yield _by_roles(facts, failure, known, title)
        return
    origin = f"raised by {op_text(failure.op)}" if failure.op else "raised here"
    labels = [facts.label("rejected_here", failure.site, origin), *inputs_of(facts, failure)]
    yield finding(
        "uncaught-exception",
        "error",
        title,
        "",
        labels,
        notes=() if failure.site is not None else ("it was raised outside the script's own files",),
        evidence={"type": failure.type, "message": failure.message, "op": failure.op},
    )


def _by_roles(facts: TraceIndex, failure: Failure, known: Entry, title: str) -> Diagnostic:
    """Reports a known error without a finder: the first sentence of its page, and the lines of its roles."""
    rejected = of_failure(facts, failure)
    labels, _ = labels_of(rejected, tuple(role for role in known.roles if role in SEARCHED_ROLES))
    missing = sorted({*known.roles} - {label.role for label in labels if label is not None})
    return finding(
        failure.kind,
        rejected.severity,
        title,
        _as_clause(known.summary),
        labels or [facts.label("rejected_here", failure.site, "raised here")],
        fixes=(fix(f"`tensorlens errors {known.code}` shows a repaired example"),),
        detail=(f"not recorded: {'; '.join(WORDS.get(role, role) for role in missing)}",) if missing else (),
        evidence={"type": failure.type, "message": failure.message, "op": failure.op},
    )


def _as_clause(sentence: str) -> str:
    """Returns a sentence without its full stop, and with a small letter at the start if that is no name."""
    article = sentence.startswith(("A ", "An ", "The ", "Two ", "One ", "Backward ", "Inside "))
    text = sentence.removesuffix(".")
    return text[0].lower() + text[1:] if article else text


def inputs_of(facts: TraceIndex, failure: Failure) -> list[Label | None]:
    """Labels the lines that made the failing call's tensors."""
    labels: list[Label | None] = []
    for access in failure.inputs[:MAX_TENSORS]:
        tensor = facts.tensor(access.tensor)
        use = facts.creator(access.tensor)
        if use is None or use.site == failure.site:
            continue
        state = facts.state(access.tensor, failure.index)
        grad = ", requires grad" if state is not None and state.requires_grad else ""
        text = f"{named(facts, access.tensor, failure.index)}: shape {shape_text(tensor)}, {tensor.dtype}{grad}"
        labels.append(facts.label("value_made_here", use.site, text))
    return labels
