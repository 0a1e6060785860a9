"""Finds the cause of `backward-through-freed-graph`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.contexts import failed_backward
from tensorlens.analysis.lineage import ReachedCalls, backward_reaches, calls_reached_by, leaves_above
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.wording import finding, fix, in_iteration, named, severity_of, source_text
from tensorlens.records.failure_context import SavedTensor
from tensorlens.records.model import Backward, Call, Failure
from tensorlens.records.report import Diagnostic, Fix

CODE = "backward-through-freed-graph"
_UNSEEN = "which backward freed it was not seen"


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    for failure in facts.failures(CODE):
        yield explain(facts, failure)


def explain(facts: TraceIndex, failure: Failure) -> Diagnostic:
    """Reports which node was freed, which call recorded it, and which backward freed it."""
    failed = failed_backward(facts, failure)
    if failed is None:
        return _read_directly(facts, failure)
    culprit = _culprit(facts, failure, failed)
    node = "a part of the graph" if culprit.node is None else f"`{culprit.node}`"
    recorded = "part of what both passes go through" if culprit.node is None else node
    built, freeing = culprit.built, culprit.by
    labels = [
        facts.label("needed_here", failure.site, f"backward needs {node} again"),
        None if built is None else facts.label("graph_built_here", built.site, f"{recorded} was recorded here"),
        None if freeing is None else facts.label("freed_here", freeing.site, _freed_text(facts, freeing)),
    ]
    return finding(
        CODE,
        severity_of(failure),
        f"backward went a second time through {node}, whose saved tensors were freed",
        "a backward pass frees what it used; only the part of the graph built since then can be differentiated",
        labels,
        notes=() if freeing is not None else (_UNSEEN,),
        fixes=_fixes(facts, failure, built, freeing),
        evidence={"node": culprit.node, "freed": sum(bool(saved.message) for saved in _freed(failure).values())},
    )


def _read_directly(facts: TraceIndex, failure: Failure) -> Diagnostic:
    """Reports a program that itself read the saved tensors of a node, after backward had freed them."""
    passes = [b for b in facts.backwards if b.index < failure.index and not b.retain_graph]
    whole = len(facts.events) == facts.events[-1].index + 1 if facts.events else True
    freeing = passes[0] if whole and len(passes) == 1 else None
    return finding(
        CODE,
        severity_of(failure),
        "the saved tensors of a node were read after backward had freed them",
        "a backward pass frees what it used",
        [
            facts.label("needed_here", failure.site, "they are read here"),
            None if freeing is None else facts.label("freed_here", freeing.site, "this backward freed them"),
        ],
        notes=() if freeing is not None else (_UNSEEN,),
        fixes=(fix("read them before backward, or keep them for longer: `retain_graph=True`"),),
        evidence={"node": None, "freed": 0},
    )


@dataclass(frozen=True, slots=True)
class _Culprit:
    """The freed node that the failed pass reached, the call that recorded it, and the pass that freed it."""

    node: str | None = None
    built: Call | None = None
    by: Backward | None = None


def _freed(failure: Failure) -> dict[int, SavedTensor]:
    """Returns the nodes that an earlier pass may have freed, by sequence number, in the order in which the engine runs
    them.

    Those with a message are known to be freed.
    """
    nodes: dict[int, SavedTensor] = {}
    for saved in failure.saved:
        if saved.problem == "freed":
            nodes.setdefault(saved.sequence, saved)
    return nodes


def _culprit(facts: TraceIndex, failure: Failure, failed: Backward) -> _Culprit:
    """Finds the freed node that the failed pass reached first.

    The failed pass freed nodes itself before it raised. So the node is the first one that an earlier pass went through.
    Its name is certain only if no earlier pass can have gone through the nodes before it.
    """
    passes = [calls_reached_by(facts, backward) for backward in facts.backwards if backward.index < failure.index]
    freed = _freed(failure)
    certain = True
    for saved in freed.values():
        built = _recorded(facts, failure, saved)
        freeing = None if built is None else next((p.backward for p in passes if _frees(facts, p, built, saved)), None)
        if freeing is not None:
            return _Culprit(saved.node.rpartition("::")[2] if certain else None, built, freeing)
        if len(freed) == 1 and saved.message:
            return _Culprit(saved.node, built)
        certain &= built is not None and all(p.complete and built.index not in p.calls for p in passes)
    return _shared_part(facts, failed, passes)


def _recorded(facts: TraceIndex, failure: Failure, saved: SavedTensor) -> Call | None:
    """Finds the call that recorded a node.

    Each thread has its own sequence numbers, so the name of the node must agree as well, if it is known.
    """
    built = facts.call_of_node(saved.sequence, failure.index)
    if built is None:
        return None
    names = [state.grad_fn for state in built.states if state.node == saved.sequence]
    return None if any(name not in (None, saved.node) for name in names) else built


def _frees(facts: TraceIndex, reached: ReachedCalls, built: Call, saved: SavedTensor | None = None) -> bool:
    """Returns whether a pass went through the nodes of a call and freed them.

    A failed pass freed only the nodes that it ran before it stopped.
    """
    backward = reached.backward
    if backward.retain_graph or built.index not in reached.calls:
        return False
    if not backward.failed:
        return True
    stops = (f.stopped_at for f in facts.trace.failures if backward.started <= f.index <= backward.index)
    stop = next((stop.sequence for stop in stops if stop is not None and stop.sequence is not None), None)
    return stop is not None and saved is not None and saved.sequence > stop


def _shared_part(facts: TraceIndex, failed: Backward, passes: list[ReachedCalls]) -> _Culprit:
    """Finds the last call that both the failed pass and an earlier one went through. It serves where the node is
    unknown."""
    needed = calls_reached_by(facts, failed)
    for call in reversed(facts.calls):
        if call.index in needed.calls and call.nodes[1] > call.nodes[0]:
            freeing = next((reached.backward for reached in passes if _frees(facts, reached, call)), None)
            if freeing is not None:
                return _Culprit(None, call, freeing)
    return _Culprit()


def _freed_text(facts: TraceIndex, freeing: Backward) -> str:
    return f"this backward freed it{in_iteration(facts, freeing)}"


def _passes_at(facts: TraceIndex, one: Backward) -> tuple[int, int]:
    """Returns (the number of this pass among the passes of its line, how many there are).

    Passes that run inside another pass of the line do not count.
    """
    same = [b for b in facts.backwards if b.site == one.site]
    outer = [b.index for b in same if not any(a.started <= b.started and b.index < a.index for a in same)]
    return sum(index <= one.index for index in outer), len(outer)


def _fixes(facts: TraceIndex, failure: Failure, built: Call | None, freeing: Backward | None) -> tuple[Fix, ...]:
    if built is None or freeing is None:
        return (fix("compute what is differentiated again before each backward"),)
    text = source_text(facts, built.site)
    times, _ = facts.times_run(built.site, built.index)
    by_now, _ = facts.times_run(built.site, failure.index)
    if by_now > times:  # it was computed again, but this pass reaches the old one
        return (fix("`detach()` what is carried from one iteration to the next: its history ends there"),)
    _, passes = _passes_at(facts, freeing)
    if freeing.site == failure.site and passes > times and not _roots_known_before(facts, failure, freeing):
        return (
            fix(f"compute `{text}` again before each backward"),
            fix("or, if it need not be trained, `detach()` it once after computing it"),
        )
    return tuple(_fixes_of_a_shared_part(facts, failure, built, freeing))


def _fixes_of_a_shared_part(facts: TraceIndex, failure: Failure, built: Call, freeing: Backward) -> Iterator[Fix]:
    """Suggests fixes for two passes through one part of the graph.

    They depend on whether an optimizer step between the passes changed leaves that this part was computed from.
    """
    keep = f"keep the graph for the later pass: `retain_graph=True` at `{source_text(facts, freeing.site)}`"
    steps = [c for c in facts.calls if c.within and c.writes and freeing.index < c.index < failure.index]
    moved = {write.tensor for step in steps for write in step.writes}
    shared = built.outputs[0].tensor if built.outputs else None
    behind = set() if shared is None else set(leaves_above(facts, shared, built.index + 1))
    if moved & behind:
        yield fix(f"{keep}, and call `{source_text(facts, steps[0].site)}` after the last of the passes")
    else:
        entry = None if shared is None or not moved else _entry(facts, built, freeing)
        span = None if entry is None else facts.span(entry.site)
        if shared is not None and entry is not None and span is not None:
            name = named(facts, shared, entry.index)
            yield fix(
                f"if `{source_text(facts, freeing.site)}` is not to train what made {name}, detach it for that pass: "
                f"`.detach()` on line {span.line}"
            )
        yield fix(f"or {keep}" if entry is not None else keep)
    yield fix("or add what both differentiate and call backward once")


def _entry(facts: TraceIndex, built: Call, freeing: Backward) -> Call | None:
    """Finds the first call through which a pass reached the results of `built`."""
    made = {access.tensor for access in built.outputs}
    users = (c for c in facts.calls if built.index < c.index < freeing.index and made & {a.tensor for a in c.inputs})
    return next((call for call in users if backward_reaches(facts, freeing, call)), None)


def _roots_known_before(facts: TraceIndex, failure: Failure, freeing: Backward) -> bool:
    """Returns whether the roots of the failed pass existed before the graph was freed."""
    failed = failed_backward(facts, failure)
    makers = [] if failed is None else [facts.creator(root.tensor) for root in failed.roots]
    return bool(makers) and all(maker is not None and maker.index < freeing.index for maker in makers)
