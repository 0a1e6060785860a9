"""Finds the cause of `saved-tensor-hooks-disabled`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.contexts import open_region
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.wording import finding, fix, op_text, severity_of
from tensorlens.records.report import Diagnostic

CODE = "saved-tensor-hooks-disabled"
FORBIDDING = (
    "disable_saved_tensors_hooks",
    *(f"func.{name}" for name in ("grad", "vjp", "jacrev", "hessian")),
)


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    for failure in facts.failures(CODE):
        mode = open_region(facts, failure.index, *FORBIDDING)
        if mode is None or failure.op is None or not failure.op.startswith("autograd.graph."):
            continue
        checkpoint = "checkpoint" in failure.op
        hooks = "a checkpoint with `use_reentrant=False`" if checkpoint else op_text(failure.op)
        within = f"`{mode.name}`"
        yield finding(
            CODE,
            severity_of(failure),
            f"{hooks} is not allowed inside {within}",
            "it uses hooks on saved tensors, and PyTorch allows none there",
            [
                facts.label("rejected_here", failure.site, "not allowed here"),
                facts.label("mode_entered_here", mode.site, f"{within} begins here"),
            ],
            fixes=(
                fix("call the function without a checkpoint here", place=facts.span(failure.site))
                if checkpoint
                else fix(f"enter the hooks around {within}, not inside it", place=facts.span(mode.site)),
            ),
            evidence={"op": failure.op, "mode": mode.name},
        )
