"""Finds the cause of `hook-added-after-compile`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.eager_gradients import (
    backward_of,
    compile_labels,
    compiled_of,
    difference_size,
    values_block,
    worst_of,
)
from tensorlens.diagnostics.shared.wording import finding, fix, named
from tensorlens.records.observations import ALL_MODULES, LateHook
from tensorlens.records.report import Diagnostic, Fix


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    """Finds hooks without which a run that compiles nothing has the gradients of the compiled run."""
    comparison = facts.trace.eager
    if comparison is None or not comparison.differences:
        return
    late = [hook for hook in facts.trace.inspection.late if hook.number in comparison.hooks]
    if late and backward_of(facts, comparison) is not None:
        yield _report(facts, late)


def _report(facts: TraceIndex, late: list[LateHook]) -> Diagnostic:
    comparison = facts.trace.eager
    assert comparison is not None
    backward, worst = backward_of(facts, comparison), worst_of(comparison)
    compiled = compiled_of(facts, comparison)
    names = list(dict.fromkeys(f"`{facts.trace.callbacks.functions[hook.function].name}`" for hook in late))
    leaf = named(facts, worst.tensor, worst.backward)
    hooks = f"the hook{'s' if len(late) > 1 else ''} {', '.join(names)}"
    calls = facts.label("called_here", None if compiled is None else compiled.called, "its first call compiles it")
    return finding(
        "hook-added-after-compile",
        "warning",
        f"compiled code does not call {hooks}, registered after it was compiled",
        "compiled code has the hooks that its modules had when it was compiled, and does not check for new ones",
        [
            *(facts.label("hook_registered_here", hook.site, "registered after compilation") for hook in late[:2]),
            next(compile_labels(facts, compiled), None),
            calls,
            facts.label("needed_here", None if backward is None else backward.site, "the first other gradient"),
        ],
        notes=(
            values_block(facts, comparison),
            f"without {'this hook' if len(late) == 1 else 'these hooks'}, the eager run has the compiled gradients",
        ),
        fixes=(
            fix(
                "call `torch._dynamo.reset()` below this line, to compile again with the hook",
                place=facts.span(late[-1].site),
            ),
            *([] if any(hook.kind.endswith(ALL_MODULES) for hook in late) else [_guards()]),
            fix(f"or register {hooks} before the first compiled call"),
        ),
        evidence={
            "hooks": names,
            "leaf": leaf,
            "largest": worst.largest,
            "relative": worst.relative,
            "tensors": len(comparison.differences),
        },
        detail=tuple(difference_size(comparison)),
    )


def _guards() -> Fix:
    """Names the setting that makes compiled code check for new hooks, except those of all modules."""
    return fix("or set `torch._dynamo.config.skip_nnmodule_hook_guards = False` before compiling")
