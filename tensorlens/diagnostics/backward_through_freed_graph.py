"""backward went through a part of the graph whose saved tensors an earlier backward had already freed.

To save memory, backward frees the tensors that were saved for it as soon as it has used them. A second pass through the
same nodes finds nothing there. That happens when the same result is differentiated twice, when two losses share a part
of the forward pass, and, most often, when something computed before a loop or in its last iteration (a hidden state, a
running average, a scale) is used again: its graph is still part of the new loss, and it is freed.

The message proposes `retain_graph=True`. That is right where the same graph is to be differentiated twice and nothing
changes in between: two results of one forward pass whose gradients are needed one by one. It is wrong in a loop: each
pass then goes through the graphs of all iterations before it, memory and time grow, and once an optimizer has moved the
parameters the next error follows. For a hidden state that is carried on, `detach()` it between iterations. For two
losses on a shared trunk, add the losses and call backward once. For something computed before the loop, compute it
inside.

## Fails

```python
import torch

weight = torch.tensor([0.5, 1.5], requires_grad=True)
scale = torch.exp(weight)  # graph_built_here
for step in range(2):
    loss = (scale * step).sum()
    loss.backward()  # freed_here, needed_here
```

## Fixed

```python
import torch

weight = torch.tensor([0.5, 1.5], requires_grad=True)
for step in range(2):
    scale = torch.exp(weight)
    loss = (scale * step).sum()
    loss.backward()
```
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.facts import Facts
from tensorlens.analysis.lineage import leaves_above, reaches
from tensorlens.analysis.regions import failed_backward
from tensorlens.diagnostics.wording import finding, fix, named, ordinal, severity_of, source_text
from tensorlens.model import Backward, Call, Diagnostic, Failure, Fix, SavedTensor

CODE = "backward-through-freed-graph"


def find(facts: Facts) -> Iterator[Diagnostic]:
    for failure in facts.failures(CODE):
        yield explain(facts, failure)


def explain(facts: Facts, failure: Failure) -> Diagnostic:
    """Which node was freed, the call that made it, and the backward that freed it."""
    freed = [saved for saved in failure.saved if saved.problem == "freed"]
    saved, built, by = _culprit(facts, failure, freed)
    node = "a part of the graph" if saved is None else f"`{saved.node}`"
    labels = [
        facts.label("needed_here", failure.site, f"backward needs {node} again"),
        None if built is None else facts.label("graph_built_here", built.site, f"{node} was recorded here"),
        None if by is None else facts.label("freed_here", by.site, _freed_text(facts, by)),
    ]
    return finding(
        CODE,
        severity_of(failure),
        f"backward went a second time through {node}, whose saved tensors were freed",
        "a backward pass frees what it used; only the part of the graph built since then can be differentiated",
        labels,
        notes=() if by is not None else ("which backward freed it was not seen",),
        fixes=_fixes(facts, failure, built, by),
        evidence={"node": None if saved is None else saved.node, "freed": len(freed)},
    )


def _culprit(
    facts: Facts, failure: Failure, freed: list[SavedTensor]
) -> tuple[SavedTensor | None, Call | None, Backward | None]:
    """The freed node that the failed pass met first. It freed nodes itself before it failed: those had been whole, so
    the one sought is the first that an earlier pass went through."""
    for saved in freed:
        built = facts.call_of_node(saved.sequence, failure.index)
        by = None if built is None else _freed_by(facts, built, failure)
        if by is not None:
            return saved, built, by
    built = _last_built(facts, failure)
    by = None if built is None else _freed_by(facts, built, failure)
    return (freed[0] if freed else None), built, by


def _last_built(facts: Facts, failure: Failure) -> Call | None:
    """Where the graph does not show its nodes: the call that recorded what an earlier backward went through."""
    for backward in facts.backwards:
        if backward.failed or backward.index >= failure.index:
            continue
        for call in reversed(facts.calls):
            if call.index < backward.index and call.nodes[1] > call.nodes[0] and reaches(facts, backward, call):
                return call
    return None


def _freed_by(facts: Facts, built: Call, failure: Failure) -> Backward | None:
    """The first backward that went through the call's nodes and did not keep them."""
    for backward in facts.backwards:
        kept = backward.retain_graph or backward.create_graph or backward.failed
        if kept or not built.index < backward.index < failure.index:
            continue
        if reaches(facts, backward, built):
            return backward
    return None


def _freed_text(facts: Facts, by: Backward) -> str:
    times, total = facts.times_run(by.site, by.index)
    again = f", the {ordinal(times)} time this ran" if total > 1 else ""
    return f"this backward freed it{again}"


def _fixes(facts: Facts, failure: Failure, built: Call | None, by: Backward | None) -> tuple[Fix, ...]:
    if built is None or by is None:
        return (fix("compute what is differentiated again before each backward"),)
    text = source_text(facts, built.site)
    times, _ = facts.times_run(built.site, built.index)
    by_now, _ = facts.times_run(built.site, failure.index)
    if by_now > times:  # it was computed anew, and yet the old one is reached
        return (fix("`detach()` what is carried from one iteration to the next: its history ends there"),)
    _, passes = facts.times_run(by.site, by.index)
    if by.site == failure.site and passes > times and not _roots_known_before(facts, failure, by):
        return (
            fix(f"compute `{text}` again before each backward"),
            fix("or, if it need not be trained, `detach()` it once after computing it"),
        )
    return tuple(_fixes_of_a_shared_part(facts, failure, built, by))


def _fixes_of_a_shared_part(facts: Facts, failure: Failure, built: Call, by: Backward) -> Iterator[Fix]:
    """Two passes through one part: whether a step between them moves that part says which cure holds."""
    keep = f"keep the graph for the later pass: `retain_graph=True` at `{source_text(facts, by.site)}`"
    steps = [c for c in facts.calls if c.within and c.writes and by.index < c.index < failure.index]
    moved = {write.tensor for step in steps for write in step.writes}
    shared = built.outputs[0].tensor if built.outputs else None
    behind = set() if shared is None else set(leaves_above(facts, shared, built.index + 1))
    if moved & behind:
        yield fix(f"{keep}, and call `{source_text(facts, steps[0].site)}` after the last of the passes")
    else:
        entry = None if shared is None or not moved else _entry(facts, built, by)
        span = None if entry is None else facts.span(entry.site)
        if shared is not None and entry is not None and span is not None:
            name = named(facts, shared, entry.index)
            yield fix(
                f"if `{source_text(facts, by.site)}` is not to train what made {name}, detach it for that pass: "
                f"`.detach()` on line {span.line}"
            )
        yield fix(f"or {keep}" if entry is not None else keep)
    yield fix("or add what both differentiate and call backward once")


def _entry(facts: Facts, built: Call, by: Backward) -> Call | None:
    """The first call through which a pass came to what `built` made."""
    made = {access.tensor for access in built.outputs}
    users = (c for c in facts.calls if built.index < c.index < by.index and made & {a.tensor for a in c.inputs})
    return next((call for call in users if reaches(facts, by, call)), None)


def _roots_known_before(facts: Facts, failure: Failure, by: Backward) -> bool:
    """Whether what the failed pass started from was there already when the graph was freed."""
    failed = failed_backward(facts, failure)
    makers = [] if failed is None else [facts.maker(root.tensor) for root in failed.roots]
    return bool(makers) and all(maker is not None and maker.index < by.index for maker in makers)
