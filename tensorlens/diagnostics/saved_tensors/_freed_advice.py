"""Advises on a graph that two backward passes go through: what to compute again, what to detach, what to clear."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.carried import carried, every_carried
from tensorlens.analysis.contexts import failed_backward, open_region, recomputing_checkpoint
from tensorlens.analysis.lineage import ancestry, calls_reached_by, graph_leaves
from tensorlens.analysis.naming.places import place_of
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.saved_tensors._reused_result import before_closure, fixes_of_one_result
from tensorlens.diagnostics.shared.carried_fixes import assigned_detach, cut_carried, unused_detach
from tensorlens.diagnostics.shared.edits.expressions import argument_with_call, with_keyword
from tensorlens.diagnostics.shared.kept import described, is_plain, line_from
from tensorlens.diagnostics.shared.running_totals import is_total
from tensorlens.diagnostics.shared.wording import fix, named, source_text
from tensorlens.records.model import Backward, Call, Failure, Region
from tensorlens.records.report import Edit, Fix, Label

_LINKS = 2  # labels for what is carried


def passes_at(facts: TraceIndex, one: Backward) -> tuple[int, int]:
    """Returns (the number of this pass among the passes of its line, how many there are).

    Passes that run inside another pass of the line do not count.
    """
    same = [b for b in facts.backwards if b.site == one.site]
    outer = [b.index for b in same if not any(a.started <= b.started and b.index < a.index for a in same)]
    return sum(index <= one.index for index in outer), len(outer)


def fixes_of(facts: TraceIndex, failure: Failure, built: Call | None, freeing: Backward | None) -> tuple[Fix, ...]:
    """Suggests fixes for a pass that goes through what an earlier pass freed."""
    failed = failed_backward(facts, failure)
    if built is None or freeing is None or failed is None:
        return (fix("compute what is differentiated again before each backward", place=facts.span(failure.site)),)
    checkpoint = shared_by_checkpoints(facts, failure, built, freeing)
    if checkpoint is not None:
        edit = with_keyword(facts, checkpoint.site, "use_reentrant", "False")
        text = "pass `use_reentrant=False`: backward then goes through what the checkpoints share once, at the end"
        return (fix(text, *(edit,) if edit else (), place=facts.span(checkpoint.site)),)
    times, _ = facts.times_run(built.site, built.index)
    before, by_now = (facts.times_run(built.site, index)[0] for index in (freeing.index, failure.index))
    if by_now > before:  # it was computed again, but this pass reaches the old one
        return (_cut(facts, failure, freeing, built),)
    _, passes = passes_at(facts, freeing)
    if freeing.site == failure.site and passes > times and not _roots_known_before(facts, failure, freeing):
        return tuple(fixes_of_one_result(facts, failure, built, freeing))
    return tuple(_fixes_of_a_shared_part(facts, failure, built, freeing))


def shared_by_checkpoints(facts: TraceIndex, failure: Failure, built: Call, freeing: Backward) -> Region | None:
    """Finds the checkpoint whose own backward failed, if both passes ran inside one backward of the script, and what
    they share was computed outside of the checkpoint."""
    failed = failed_backward(facts, failure)
    if failed is None or failed is freeing:
        return None
    around = (b for b in facts.backwards if b.started < freeing.started and freeing.index < failed.started <= b.index)
    outer = next(around, None)
    runs = [e for e in facts.events if isinstance(e, Region) and e.name == "recomputation" and e.entering]
    own = [each for each in runs if outer is not None and outer.started < each.index < failed.started]
    checkpoint = recomputing_checkpoint(facts, own[-1].index + 1) if own else None
    if checkpoint is None:
        return None
    inside = open_region(facts, built.index, "checkpoint", "recomputation")
    return checkpoint if inside is None and built.index < checkpoint.index else None


# --- a result of an earlier pass --------------------------------------------------------------------------------------


def _cut(facts: TraceIndex, failure: Failure, after: Backward, built: Call) -> Fix:
    """Advises on what leads from one iteration back to the graph of the one before, by name where it is known."""
    failed, place = failed_backward(facts, failure), facts.span(after.site)
    every = [] if failed is None else every_carried(facts, failed, after)
    unused = unused_detach(facts, failure, every)
    found = None if failed is None else carried(facts, failed, after, built)
    if failed is not None and (assigned := unused and assigned_detach(facts, unused, failed)):
        return assigned
    if every and (known := cut_carried(facts, failure, after, every)):
        return known
    if found is None:
        return fix(
            "something computed before this backward is used again after it: `detach()` it below this line; later "
            "passes then send no gradient through it",
            place=place,
        )
    what = described(facts, found.tensor, found.use.index)
    return fix(
        f"{what}, which {line_from(facts, found.use.site, after.site)} uses again, leads back to the graph of the pass "
        "before: `detach()` or drop it below this line; later passes then send no gradient through it",
        place=place,
    )


# --- a part that two losses share -------------------------------------------------------------------------------------


def _fixes_of_a_shared_part(facts: TraceIndex, failure: Failure, built: Call, freeing: Backward) -> Iterator[Fix]:
    """Suggests fixes for two passes through one part of the graph.

    They depend on whether an optimizer step between the passes changed leaves that this part was computed from.
    """
    keep, place = "keep the graph for the later pass: pass `retain_graph=True` here", facts.span(freeing.site)
    if _is_differentiated(facts, failure, freeing):
        edit = with_keyword(facts, freeing.site, "create_graph", "True")
        text = "the later pass also differentiates the gradients from here: pass `create_graph=True`"
        yield fix(text, *(edit,) if edit else (), place=place)
        return
    kept = with_keyword(facts, freeing.site, "retain_graph", "True")
    steps = [c for c in facts.calls if c.within and c.writes and freeing.index < c.index < failure.index]
    moved = {write.tensor for step in steps for write in step.writes}
    shared = _last_shared(facts, failure, built, freeing)
    behind = set() if shared is None else graph_leaves(facts, shared, failure.index)
    if moved & behind:
        step = steps[0]
        yield from _without(facts, failure, shared, behind, moved)
        yield fix(
            f"run the forward pass of the later loss below `{source_text(facts, step.site)}`, with the new values",
            place=facts.span(step.site),
        )
        yield fix(
            f"or {keep}, and call that step after the last of the passes: it then uses the gradients of both",
            place=place,
        )
        return
    cut = None if not moved or shared is None else _detached(facts, freeing, shared)
    if cut is not None:
        backward = f"`{source_text(facts, freeing.site)}`"
        yield fix(f"if {backward} is not to train what made `{cut[0]}`, detach it for that pass", cut[1])
    yield fix(f"or {keep}" if moved else keep, *(kept,) if kept else (), place=place)
    failed = failed_backward(facts, failure)
    same = failed is not None and {r.tensor for r in failed.roots} == {r.tensor for r in freeing.roots}
    alike = failed is not None and all(_is_plain(facts, each) for each in (freeing, failed))
    if alike and not moved and not same and not _is_cleared_between(facts, freeing, failure):
        yield fix("or add what both differentiate, and call backward once", place=facts.span(failure.site))


def _without(
    facts: TraceIndex, failure: Failure, shared: int | None, behind: set[int], moved: set[int]
) -> Iterator[Fix]:
    """Suggests to detach a shared result for the later pass, if the steps between have trained all that made it, and
    the later pass trains more."""
    failed = failed_backward(facts, failure)
    if failed is None or shared is None or not behind <= moved:
        return
    cut, reached = _detached(facts, failed, shared), set[int]()
    for root in failed.roots:
        reached |= graph_leaves(facts, root.tensor, failed.index)
    if cut is not None and reached - behind:
        yield fix(f"detach `{cut[0]}` for this pass: it then no longer trains what made `{cut[0]}`", cut[1])


def _is_differentiated(facts: TraceIndex, failure: Failure, freeing: Backward) -> bool:
    """Returns whether the failed pass differentiates something that was computed from the gradients of an earlier
    one."""
    failed = failed_backward(facts, failure)
    if failed is None or freeing.create_graph or freeing.op != "autograd.grad":
        return False
    made = {c.index for c in facts.calls if c.op == "autograd.grad" and c.site == freeing.site}
    roots = [root.tensor for root in failed.roots]
    return any(call.index in made for root in roots for _, call in ancestry(facts, root, failed.index))


def _is_plain(facts: TraceIndex, one: Backward) -> bool:
    """Returns whether a pass adds the gradients of plain numbers to all that they reach: then several can be one."""
    numbers = all(not facts.tensor(root.tensor).shape for root in one.roots)
    return one.op != "autograd.grad" and not one.inputs and numbers


def _is_cleared_between(facts: TraceIndex, freeing: Backward, failure: Failure) -> bool:
    """Returns whether a gradient was cleared or replaced between two passes, so that the two do not add up."""
    held = {gradient.held for gradient in freeing.gradients}
    for call in facts.calls:
        if freeing.index < call.index < failure.index:
            if call.op.endswith("grad.__set__") or any(write.tensor in held for write in call.writes):
                return True
    return False


def _last_shared(facts: TraceIndex, failure: Failure, built: Call, freeing: Backward) -> int | None:
    """Finds the last result that both passes go through."""
    failed = failed_backward(facts, failure)
    calls = calls_reached_by(facts, freeing).calls
    both = calls & calls_reached_by(facts, failed).calls if failed is not None else frozenset[int]()
    last = facts.call(max(both, default=built.index)) or built
    return last.outputs[0].tensor if last.outputs else None


def _detached(facts: TraceIndex, freeing: Backward, shared: int) -> tuple[str, Edit] | None:
    """Detaches a shared result for the first pass, in the line of its function that passes it on.

    Returns its name and the edit.
    """
    name, here, made = facts.name(shared, freeing.index), facts.trace.sites[freeing.site], facts.creator(shared)
    if made is None or not is_plain(name):
        return None
    reached = calls_reached_by(facts, freeing).calls
    users = [call for call in facts.calls if made.index < call.index < freeing.index and call.index in reached]
    sites = dict.fromkeys(site for call in users for site in facts.call_chain(call.site))
    lines = {facts.trace.sites[site].span.line for site in sites if facts.scope(site) == place_of(here)[:2]}
    found = [
        edit for line in sorted(lines) if (edit := argument_with_call(facts, here.span.file, line, name, "detach"))
    ]
    return (name, found[0]) if len(found) == 1 else None


def links(facts: TraceIndex, failure: Failure, built: Call | None, freeing: Backward | None) -> Iterator[Label]:
    """Labels the lines between the released graph and the pass that needs it again: what carries it on, a `detach()`
    without effect, the call that is given a shared result."""
    failed = failed_backward(facts, failure)
    if built is None or freeing is None or failed is None:
        return
    checkpoint = shared_by_checkpoints(facts, failure, built, freeing)
    if checkpoint is not None:
        yield from _at(facts, checkpoint.site, "called_here", "runs a backward of its own for each call")
    every = every_carried(facts, failed, freeing)
    unused = unused_detach(facts, failure, every)
    if unused is not None:
        yield from _at(facts, unused.site, "value_made_here", "nothing uses this detached result")
    for each in every[:_LINKS]:
        if not facts.same_line(each.made.site, built.site):
            what = named(facts, each.tensor, each.use.index)
            text = f"{what} has this graph in the next pass" if is_plain(what) else "the next pass uses this result"
            role = "accumulated_here" if is_total(facts, each) else "value_made_here"
            yield from _at(facts, each.made.site, role, text)
    _, above = before_closure(facts, failure, freeing)
    if above:
        span = facts.trace.sites[failure.stack[-1]].span
        place = facts.span_of(above[-1], span.file)
        yield Label("graph_built_here", place, "runs once, for all passes")
    shared = _shared_and_kept(facts, failure, built, freeing) if freeing.site != failure.site else None
    if shared is not None and (cut := _detached(facts, freeing, shared)):
        yield Label("called_here", cut[1].span, f"is given `{cut[0]}` with its graph")


def is_led_back_to(facts: TraceIndex, failure: Failure, freeing: Backward | None) -> bool:
    """Returns whether another line is the cause: a total to which each round adds, a result from outside a closure."""
    if freeing is not None and before_closure(facts, failure, freeing)[1]:
        return True
    failed = failed_backward(facts, failure)
    every = [] if failed is None or freeing is None else every_carried(facts, failed, freeing)
    return bool(every) and all(is_total(facts, each) for each in every)


def _at(facts: TraceIndex, site: int, role: str, text: str) -> Iterator[Label]:
    label = facts.label(role, site, text)
    if label is not None:
        yield label


def _shared_and_kept(facts: TraceIndex, failure: Failure, built: Call, freeing: Backward) -> int | None:
    """Finds the last result that both passes go through, if a step between them trains none of what made it."""
    steps = [c for c in facts.calls if c.within and c.writes and freeing.index < c.index < failure.index]
    moved = {write.tensor for step in steps for write in step.writes}
    shared = _last_shared(facts, failure, built, freeing)
    if not moved or shared is None or moved & graph_leaves(facts, shared, failure.index):
        return None
    return shared


def _roots_known_before(facts: TraceIndex, failure: Failure, freeing: Backward) -> bool:
    """Returns whether the roots of the failed pass existed before the graph was freed."""
    failed = failed_backward(facts, failure)
    makers = [] if failed is None else [facts.creator(root.tensor) for root in failed.roots]
    return bool(makers) and all(maker is not None and maker.index < freeing.index for maker in makers)
