"""Advises on a graph that two backward passes go through: what to compute again, what to detach, what to clear."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.carried import Carried, carried, is_used_in_pass, name_in_function, old_inputs
from tensorlens.analysis.contexts import failed_backward
from tensorlens.analysis.lineage import calls_reached_by, graph_leaves
from tensorlens.analysis.naming.places import callers, place_of
from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.edits.expressions import argument_with_call
from tensorlens.diagnostics.shared.kept import described, is_plain, line_from
from tensorlens.diagnostics.shared.wording import fix, source_text
from tensorlens.records.model import Backward, Call, Failure
from tensorlens.records.report import Fix


def passes_at(facts: TraceIndex, one: Backward) -> tuple[int, int]:
    """Returns (the number of this pass among the passes of its line, how many there are).

    Passes that run inside another pass of the line do not count.
    """
    same = [b for b in facts.backwards if b.site == one.site]
    outer = [b.index for b in same if not any(a.started <= b.started and b.index < a.index for a in same)]
    return sum(index <= one.index for index in outer), len(outer)


def fixes_of(facts: TraceIndex, failure: Failure, built: Call | None, freeing: Backward | None) -> tuple[Fix, ...]:
    """Suggests fixes for a pass that goes through what an earlier pass freed."""
    if built is None or freeing is None:
        return (fix("compute what is differentiated again before each backward", place=facts.span(failure.site)),)
    failed = failed_backward(facts, failure)
    times, _ = facts.times_run(built.site, built.index)
    by_now, _ = facts.times_run(built.site, failure.index)
    if by_now > times:  # it was computed again, but this pass reaches the old one
        found = None if failed is None else carried(facts, failed, freeing, built)
        return (_cut(facts, found, freeing),)
    _, passes = passes_at(facts, freeing)
    if freeing.site == failure.site and passes > times and not _roots_known_before(facts, failure, freeing):
        return tuple(_fixes_of_one_result(facts, built))
    return tuple(_fixes_of_a_shared_part(facts, failure, built, freeing))


# --- a result of an earlier pass --------------------------------------------------------------------------------------


def _cut(facts: TraceIndex, found: Carried | None, after: Backward) -> Fix:
    """Advises on what leads from one iteration back to the graph of the one before, by name where it is known."""
    place = facts.span(after.site)
    if found is None:
        return fix(
            "something computed before this backward is used again after it: `detach()` it below this line; later "
            "passes then send no gradient through it",
            place=place,
        )
    name, made = name_in_function(facts, found, after.site), facts.trace.sites[found.made.site]
    old, held = old_inputs(found.use, facts, after.index), _list_of(facts, found.use)
    if held and len(old) < len(found.use.inputs):
        return fix(
            f"{len(old)} of the {len(found.use.inputs)} results in `{held}` {'is' if len(old) == 1 else 'are'} from an "
            "earlier pass: clear it below this line, and any list that grows with it",
            place=place,
        )
    if name is not None and "[" not in name:
        return fix(
            f"`{name}` leads back to the graph of the pass before: put `{name} = {name}.detach()` below this line",
            place=place,
        )
    if found.made.op == "torch.lstm" and len(made.targets) == 2 and not is_used_in_pass(facts, found, after):
        state = made.targets[1]
        return fix(
            f"`{state}` leads back to the graph of the pass before: put `{state} = tuple(t.detach() for t in {state})` "
            "below this line",
            place=made.span,
        )
    what = described(facts, found.tensor, found.use.index)
    return fix(
        f"{what}, which {line_from(facts, found.use.site, after.site)} uses again, leads back to the graph of the pass "
        "before: `detach()` or drop it below this line; later passes then send no gradient through it",
        place=place,
    )


def _list_of(facts: TraceIndex, use: Call) -> str:
    """Returns the name of the list whose tensors a call such as `torch.stack(losses)` takes; "" if it takes no such
    list."""
    site = facts.trace.sites[use.site]
    if use.op.rpartition(".")[2] not in ("stack", "cat", "concat", "hstack", "vstack") or len(use.inputs) < 2:
        return ""
    operands = facts.names.syntax.operands(site, use.op)
    name = plain_name(operands[0]) if operands else None
    return name or ""


def _fixes_of_one_result(facts: TraceIndex, built: Call) -> Iterator[Fix]:
    """Suggests fixes for a result that was computed once and is part of every pass."""
    text, place = source_text(facts, built.site), facts.span(built.site)
    kept = _attribute_of(facts, built)
    where = f"`{kept}` keeps it from pass to pass: " if kept else ""
    yield fix(f"{where}compute `{text}` again before each backward", place=place)
    unless = "or, if these passes are not to train what it is computed from, `detach()` it once"
    ran_once = facts.times_run(built.site, built.index)[1] == 1
    yield fix(f"{unless} here", place=place) if ran_once else fix(f"{unless}, where it is computed for them")


def _attribute_of(facts: TraceIndex, built: Call) -> str:
    """Returns the attribute or item that still holds the result of a call when the run ends; "" if none does."""
    results = {access.tensor for access in built.outputs}
    names = (binding.name for binding in facts.trace.end.bindings if binding.tensor in results)
    return next((name for name in names if "." in name), "")


# --- a part that two losses share -------------------------------------------------------------------------------------


def _fixes_of_a_shared_part(facts: TraceIndex, failure: Failure, built: Call, freeing: Backward) -> Iterator[Fix]:
    """Suggests fixes for two passes through one part of the graph.

    They depend on whether an optimizer step between the passes changed leaves that this part was computed from.
    """
    keep = "keep the graph for the later pass: pass `retain_graph=True` here"
    place = facts.span(freeing.site)
    steps = [c for c in facts.calls if c.within and c.writes and freeing.index < c.index < failure.index]
    moved = {write.tensor for step in steps for write in step.writes}
    shared = _last_shared(facts, failure, built, freeing)
    behind = set() if shared is None else graph_leaves(facts, shared, failure.index)
    if moved & behind:
        step = steps[0]
        yield fix(
            f"run the forward pass of the later loss below `{source_text(facts, step.site)}`, with the new values",
            place=facts.span(step.site),
        )
        yield fix(
            f"or {keep}, and call that step after the last of the passes: it then uses the gradients of both",
            place=place,
        )
        return
    if moved and shared is not None:
        yield from _detached(facts, freeing, shared)
    yield fix(f"or {keep}" if moved else keep, place=place)
    failed = failed_backward(facts, failure)
    same = failed is not None and {r.tensor for r in failed.roots} == {r.tensor for r in freeing.roots}
    if not moved and not same and not _is_cleared_between(facts, freeing, failure):
        yield fix("or add what both differentiate, and call backward once", place=facts.span(failure.site))


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


def _detached(facts: TraceIndex, freeing: Backward, shared: int) -> Iterator[Fix]:
    """Suggests to detach a shared result for the first pass, in the line of its function that passes it on."""
    name, here, made = facts.name(shared, freeing.index), facts.trace.sites[freeing.site], facts.creator(shared)
    if made is None or not is_plain(name):
        return
    reached = calls_reached_by(facts, freeing).calls
    users = [call for call in facts.calls if made.index < call.index < freeing.index and call.index in reached]
    sites = dict.fromkeys(site for call in users for site in (call.site, *callers(facts.trace, call.site)))
    lines = {
        facts.trace.sites[site].span.line
        for site in sites
        if place_of(facts.trace.sites[site])[:2] == place_of(here)[:2]
    }
    found = [
        edit for line in sorted(lines) if (edit := argument_with_call(facts, here.span.file, line, name, "detach"))
    ]
    if len(found) == 1:
        backward = f"`{source_text(facts, freeing.site)}`"
        yield fix(f"if {backward} is not to train what made `{name}`, detach it for that pass", found[0])


def _roots_known_before(facts: TraceIndex, failure: Failure, freeing: Backward) -> bool:
    """Returns whether the roots of the failed pass existed before the graph was freed."""
    failed = failed_backward(facts, failure)
    makers = [] if failed is None else [facts.creator(root.tensor) for root in failed.roots]
    return bool(makers) and all(maker is not None and maker.index < freeing.index for maker in makers)
