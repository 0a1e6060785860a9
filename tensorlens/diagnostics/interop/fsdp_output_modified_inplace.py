"""Finds the cause of `fsdp-output-modified-inplace`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.ranks.sharding import OUTPUT_WRITTEN, LostHook, lost_hooks
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.wording import as_written, finding, fix, named
from tensorlens.records.report import Diagnostic

_WHY = "a write gives a view a new history, without the hook on the old one that gathers the parameters for backward"


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    """Reports outputs of sharded modules whose hook a write took away; of those of one line, the first."""
    seen: set[tuple[int | None, int]] = set()
    for lost in lost_hooks(facts):
        if (lost.output.site, lost.write.site) not in seen:
            seen.add((lost.output.site, lost.write.site))
            yield _report(facts, lost)


def _report(facts: TraceIndex, lost: LostHook) -> Diagnostic:
    failed = lost.backward.failed
    name, code = named(facts, lost.output.tensor, lost.write.index), as_written(facts, lost.write)
    written = facts.label("modified_here", lost.write.site, "takes the hook of `fully_shard` away", lost.write.index)
    arrives = "needs parameters that were not gathered" if failed else "runs without this hook"
    place = None if written is None else written.span
    return finding(
        OUTPUT_WRITTEN,
        "error" if failed else "warning",
        f"{code} changed a view that a module of `fully_shard` had returned",
        _WHY,
        [
            written,
            facts.label("view_made_here", lost.output.site, f"returns {name}, a view, with the hook"),
            facts.label("needed_here", lost.backward.site, arrives),
        ],
        fixes=(
            fix("compute a new tensor here instead: `y = y + x`, not `y += x`", place=place),
            fix("or let the module return a copy: `.clone()`"),
        ),
        evidence={"output": name, "failed": failed},
    )
