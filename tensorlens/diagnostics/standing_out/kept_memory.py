"""Names lines whose results a list or another object keeps, more at each look at memory."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.held_memory import Growth, bytes_text, growths
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.diagnostics.training import running_total_keeps_graph_alive
from tensorlens.records.report import Label, StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds lines of which every look at memory finds more results alive, unless a finding names the line.

    Data that a line reads again after later steps is that of a replay memory.
    """
    facts = training.facts
    reported = {label.span for each in running_total_keeps_graph_alive.find(facts) for label in each.labels}
    for growth in growths(facts):
        label = facts.label("value_made_here", growth.calls[-1].site, "made here", growth.calls[-1].index)
        if label is not None and not any(_on_one_line(label.span, span) for span in reported):
            if _are_snapshots(training, growth):
                continue
            read = _read_later(facts, growth, label)
            if growth.graphs or read is None or _is_computed(training, growth):
                yield stands_out(_text(facts, growth), label, read)


def _is_computed(training: MeasuredTraining, growth: Growth) -> bool:
    """Returns whether results are computed from parameters that the run trains."""
    call = growth.calls[-1]
    above = ancestry(training.facts, call.outputs[0].tensor, call.index + 1) if call.outputs else ()
    return any(access.tensor in training.training.stepped for _, made in above for access in made.inputs)


def _are_snapshots(training: MeasuredTraining, growth: Growth) -> bool:
    """Returns whether results are copies of parameters that another line reads, also those that no look has counted."""
    facts, last = training.facts, growth.calls[-1]
    held = {facts.storage_of(number, last.index) for number in training.training.stepped}
    if (
        growth.graphs
        or not last.inputs
        or not all(facts.storage_of(access.tensor, last.index) in held for access in last.inputs)
    ):
        return False
    kept = {a.tensor for call in facts.calls if call.site == last.site and call.op == last.op for a in call.outputs}
    return any(
        not facts.same_line(call.site, last.site) and any(access.tensor in kept for access in call.inputs)
        for call in facts.calls
    )


def _read_later(facts: TraceIndex, growth: Growth, made: Label) -> Label | None:
    """Labels the last line that reads one of the results, or memory that it shares, after a later step."""
    results = {facts.storage_of(a.tensor, call.index): call.index for call in growth.calls for a in call.outputs}
    results.pop(None, None)
    steps = [step.index for step in facts.trace.inspection.steps]
    for call in reversed(facts.calls):
        read = results.keys() & {facts.storage_of(access.tensor, call.index) for access in call.inputs}
        between = (bisect_left(steps, call.index) - bisect_left(steps, results[each]) for each in read)
        if not call.within and any(count > 1 for count in between):
            label = facts.label("needed_here", call.site, "reads one of them after later steps", call.index)
            return None if label is None or _on_one_line(label.span, made.span) else label
    return None


def _on_one_line(one: object, other: object) -> bool:
    return (getattr(one, "file", 0), getattr(one, "line", 0)) == (getattr(other, "file", 1), getattr(other, "line", 1))


def _text(facts: TraceIndex, growth: Growth) -> str:
    first, last = next(amount for amount in growth.amounts if amount.tensors), growth.amounts[-1]
    graphs = ", each with its graph" if growth.graphs == last.tensors else f", {growth.graphs} with a graph"
    amount = f"{first.tensors} from earlier steps at step {first.step}, {last.tensors} at step {last.step}"
    text = f"results of {as_written(facts, growth.calls[-1])} stay alive: {amount} ({bytes_text(last.size)}"
    text += f"{graphs if growth.graphs else ''})"
    holder = _holder(facts, growth)
    return f"{text}; `{holder}` holds them" if holder else text


def _holder(facts: TraceIndex, growth: Growth) -> str:
    """Returns the name, at the end of the run, of the container that holds most of the named results."""
    made = {access.tensor for call in growth.calls for access in call.outputs}
    names = [binding.name for binding in facts.trace.end.bindings if binding.tensor in made and "[" in binding.name]
    holders = Counter(name.partition("[")[0] for name in names)
    return holders.most_common(1)[0][0] if holders else ""
