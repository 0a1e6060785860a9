"""Finds the cause of `backward-through-freed-graph`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.contexts import failed_backward
from tensorlens.analysis.lineage import ReachedCalls, calls_reached_by
from tensorlens.analysis.sampled_run import has_break
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.saved_tensors._freed_advice import fixes_of, is_led_back_to, links, passes_at
from tensorlens.diagnostics.shared.kept import line_from, operation
from tensorlens.diagnostics.shared.wording import as_written, finding, fix, severity_of
from tensorlens.records.failure_context import SavedTensor
from tensorlens.records.model import Backward, Call, Failure
from tensorlens.records.report import Diagnostic

CODE = "backward-through-freed-graph"
_UNSEEN = "which backward released it was not seen"


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    for failure in facts.failures(CODE):
        yield explain(facts, failure)


def explain(facts: TraceIndex, failure: Failure) -> Diagnostic:
    """Reports which node was freed, which call recorded it, and which backward freed it."""
    failed = failed_backward(facts, failure)
    if failed is None:
        return _read_directly(facts, failure)
    culprit = _culprit(facts, failure, failed)
    built, freeing = culprit.built, culprit.by
    labels = [
        facts.label("needed_here", failure.site, _needed_text(facts, failure, culprit)),
        None
        if built is None
        else facts.label(_built_role(facts, failure, freeing), built.site, _built_text(facts, culprit), built.index),
        None if freeing is None else facts.label("freed_here", freeing.site, _freed_text(facts, failure, freeing)),
        *links(facts, failure, built, freeing),
    ]
    freed = sum(bool(saved.message) for saved in _freed(failure).values())
    return finding(
        CODE,
        severity_of(failure),
        f"{as_written(facts, failed)} needs a part of the graph that an earlier backward released",
        "a backward releases what it used, unless it has `retain_graph=True`",
        labels,
        notes=() if freeing is not None else (_UNSEEN,),
        fixes=fixes_of(facts, failure, built, freeing),
        evidence={"node": culprit.node, "freed": freed},
        detail=() if culprit.node is None else (f"the first released node on its way: `{culprit.node}`",),
    )


def _built_role(facts: TraceIndex, failure: Failure, freeing: Backward | None) -> str:
    """Calls the released call the cause, unless another line leads back to it."""
    return "value_made_here" if is_led_back_to(facts, failure, freeing) else "graph_built_here"


def _built_text(facts: TraceIndex, culprit: _Culprit) -> str:
    """Says what the call did: which node was met released is known only by its sequence number."""
    return "both passes go through this" if culprit.shared else f"{operation(facts, culprit.built)} kept values here"


def _needed_text(facts: TraceIndex, failure: Failure, culprit: _Culprit) -> str:
    """Says what the failed pass needs; where it is the same line as the pass that freed the graph, also which pass."""
    where = "a released part of the graph" if culprit.built is None else _line_of_result(facts, failure, culprit.built)
    if culprit.by is None or culprit.by.site != failure.site:
        return f"needs {where} again"
    _, total = passes_at(facts, culprit.by)
    if has_break(facts.trace):  # passes in steps without a record are not counted
        return f"a later pass: it needs {where} again"
    return f"pass {total}: it needs {where} again" if total > 1 else f"needs {where} again"


def _line_of_result(facts: TraceIndex, failure: Failure, built: Call) -> str:
    if facts.same_line(built.site, failure.site):
        return "the result of this line"
    return f"the result of {line_from(facts, built.site, failure.site)}"


def _freed_text(facts: TraceIndex, failure: Failure, freeing: Backward) -> str:
    times, total = passes_at(facts, freeing)
    same = freeing.site == failure.site and total > 1
    if same and has_break(facts.trace):
        return "an earlier pass: it released the graph"
    return f"pass {times}: this backward released the graph" if same else "this backward released the graph"


def _read_directly(facts: TraceIndex, failure: Failure) -> Diagnostic:
    """Reports a program that itself read the saved tensors of a node, after backward had freed them."""
    passes = [b for b in facts.backwards if b.index < failure.index and not b.retain_graph]
    whole = len(facts.events) == facts.events[-1].index + 1 if facts.events else True
    freeing = passes[0] if whole and len(passes) == 1 else None
    return finding(
        CODE,
        severity_of(failure),
        "what an operation kept for backward was read after backward had released it",
        "without `retain_graph=True`, a backward pass releases what the operations kept for it",
        [
            facts.label("needed_here", failure.site, "read here"),
            None if freeing is None else facts.label("freed_here", freeing.site, "this backward released it"),
        ],
        notes=() if freeing is not None else (_UNSEEN,),
        fixes=(
            fix("read it before backward", place=facts.span(failure.site)),
            fix(
                "or keep it for longer: pass `retain_graph=True`",
                place=None if freeing is None else facts.span(freeing.site),
            ),
        ),
        evidence={"node": None, "freed": 0},
    )


@dataclass(frozen=True, slots=True)
class _Culprit:
    """The freed node that the failed pass reached, the call that recorded it, and the pass that freed it.

    `shared`: the node is not known; both passes go through that call.
    """

    node: str | None = None
    built: Call | None = None
    by: Backward | None = None
    shared: bool = False


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
    built = facts.call_of_node(saved.sequence, failure.index, saved.node)
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
                return _Culprit(None, call, freeing, shared=True)
    return _Culprit()
