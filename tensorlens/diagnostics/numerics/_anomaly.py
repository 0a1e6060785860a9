"""Finds what the findings about anomaly mode share: the call whose backward failed, its input, and the mode."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.contexts import failed_backward, open_region
from tensorlens.analysis.lineage import leaf_above
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.rejected import rejected_calls
from tensorlens.diagnostics.shared.wording import as_written, finding, fix, named, node_text
from tensorlens.records.model import Call, Failure
from tensorlens.records.report import Diagnostic, Label


def find_announced(facts: TraceIndex, announced: str, why: str, help_: tuple[str, str]) -> Iterator[Diagnostic]:
    """Reports warnings that anomaly mode gave before an error in backward that the script caught.

    An error that ended the script has a finding of its own. `help_` is a text, and the role of the line to change.
    """
    for rejected in rejected_calls(facts, announced):
        failure = next((f for f in facts.trace.failures if f.index >= rejected.index and f.op), None)
        if failure is None or not failure.caught:
            continue
        call = failing_call(facts, failure)
        node = node_text(failure.saved[0].node) if failure.saved else "an operation"
        code = node if call is None else as_written(facts, call)
        labels = [
            facts.label("needed_here", failure.site, "backward fails here"),
            None if call is None else facts.label("graph_built_here", call.site, "its backward failed"),
            mode_label(facts, failure.index),
        ]
        place = next((label.span for label in labels if label is not None and label.role == help_[1]), None)
        yield finding(
            announced,
            "warning",
            f"backward failed in what {code} had recorded",
            why,
            labels,
            fixes=(fix(help_[0], place=place),),
            evidence={"message": failure.message},
            detail=(f"PyTorch says: {_first_line(failure)}",),
        )


def failing_call(facts: TraceIndex, failure: Failure) -> Call | None:
    """Finds the call that recorded the node whose backward failed."""
    return facts.call_of_node(failure.saved[0].sequence, failure.index) if failure.saved else None


def mode_label(facts: TraceIndex, at: int) -> Label | None:
    """Labels the line that entered anomaly mode."""
    entered = open_region(facts, at, "detect_anomaly")
    return None if entered is None else facts.label("mode_entered_here", entered.site, "anomaly mode begins here")


def value_label(facts: TraceIndex, failure: Failure, call: Call | None) -> Label | None:
    """Labels the input that the failing operation could not differentiate.

    It is the tensor that the operation saved with infinite, NaN or zero values, else the input whose gradient was NaN.
    If that was made on the same line, the label goes to the leaf that it was computed from. In a custom Function it
    goes to the last line that its `backward` ran.
    """
    last = _last_of_backward(facts, failure)
    if last is not None:
        return facts.label("value_made_here", last.site, "the last call of the custom `backward`")
    if call is None:
        return None
    for number in _given(facts, failure, call):
        made = next(iter(facts.producers(number, call.index)), None) or facts.first_use(number)
        site = None if made is None else made.site
        if not facts.same_line(site, call.site):
            return facts.label("value_made_here", site, _value_text(facts, failure, call, number))
    leaf = next((leaf for a in call.inputs if (leaf := leaf_above(facts, a.tensor, call.index)) is not None), None)
    use = None if leaf is None else facts.first_use(leaf)
    text = f"makes {named(facts, leaf)}, which it is computed from"
    return None if use is None else facts.label("value_made_here", use.site, text)


def _given(facts: TraceIndex, failure: Failure, call: Call) -> list[int]:
    """Lists the inputs of the failing call, the most probable cause first."""
    odd = {saved.storage for saved in failure.saved[1:]}
    position = int(failure.saved[0].slot.rpartition(" ")[2])
    numbers = [access.tensor for access in call.inputs]
    first = [number for number in numbers if facts.storage_of(number, call.index) in odd]
    return list(dict.fromkeys([*first, *numbers[position : position + 1], *numbers]))


def _value_text(facts: TraceIndex, failure: Failure, call: Call, number: int) -> str:
    storage = facts.storage_of(number, call.index)
    values = next((saved.message for saved in failure.saved[1:] if saved.storage == storage), "")
    name = named(facts, number, call.index)
    return f"makes {name}: {values}" if values else f"makes {name}"


def _last_of_backward(facts: TraceIndex, failure: Failure) -> Call | None:
    """Finds the last call that the failing custom function made in its own `backward`."""
    backward = failed_backward(facts, failure)
    built = failing_call(facts, failure)
    if backward is None or built is None or not built.op.endswith(".apply"):
        return None
    method = f"{built.op.removesuffix('.apply').rpartition('.')[2]}.backward"
    inside = [call for call in facts.calls if backward.started <= call.index < failure.index]
    own = [call for call in inside if facts.trace.sites[call.site].function.endswith(method)]
    return own[-1] if own else None


def _first_line(failure: Failure) -> str:
    return failure.message.strip().partition("\n")[0][:80]
