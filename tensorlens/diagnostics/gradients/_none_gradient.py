"""Explains a `.grad` that is None: read on a non-leaf, before backward, or after the path to it was cut."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.missing_gradient import MissingGradient, missing_gradient
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.graph_cuts import cut_fixes, cut_reason
from tensorlens.diagnostics.shared.wording import finding, fix, named, op_text, severity_of, with_method
from tensorlens.records.model import Failure
from tensorlens.records.report import Diagnostic, Fix, Label


def find_none_gradient(facts: TraceIndex, code: str) -> Iterator[Diagnostic]:
    """Reports the failures of `code` caused by a `.grad` that the failing line read and that is None."""
    for failure in facts.failures(code):
        missing = missing_gradient(facts, failure)
        if missing is not None:
            yield _report(facts, code, failure, missing)


def _report(facts: TraceIndex, code: str, failure: Failure, missing: MissingGradient) -> Diagnostic:
    name = named(facts, missing.tensor, missing.read.index)
    return finding(
        code,
        severity_of(failure),
        f"the gradient of {name} is None, and it is used here as a tensor",
        _why(facts, missing, name),
        _labels(facts, failure, missing, name),
        fixes=tuple(_fixes(facts, missing, name)),
        evidence={"tensor": name, "is_leaf": missing.is_leaf, "backward_passes": len(missing.passes)},
    )


def _why(facts: TraceIndex, missing: MissingGradient, name: str) -> str:
    if not missing.is_leaf:
        return f"{name} is computed, not a leaf: backward passes its gradient on and keeps none"
    if not missing.requires_grad:
        return f"{name} does not require grad, so backward computes no gradient for it"
    if not missing.passes:
        return "no backward pass had run when the gradient was read"
    if missing.cut is not None:
        return f"the path from {name} to the loss was cut: {cut_reason(facts, missing.cut)}"
    if not missing.used:
        return f"what backward was called on was not computed from {name}"
    return "no backward pass that had run gave it a gradient"


def _labels(facts: TraceIndex, failure: Failure, missing: MissingGradient, name: str) -> Iterator[Label | None]:
    yield facts.label(
        "needed_here", failure.site, f"{name}`.grad` is None" if name[0] != "`" else f"`{name[1:-1]}.grad` is None"
    )
    if missing.cut is not None:
        source = named(facts, missing.cut.source, missing.cut.call.index)
        yield facts.label(
            "graph_cut_here", missing.cut.call.site, f"{op_text(missing.cut.call.op)} leaves {source} behind"
        )
    producers = facts.producers(missing.tensor, missing.read.index)
    made = producers[0] if producers else facts.first_use(missing.tensor)
    site = None if made is None else made.site
    if not missing.is_leaf:
        yield facts.label("nonleaf_made_here", site, f"{name} is computed here: from now on the name is not a leaf")
        yield from _original_leaf(facts, missing)
    else:
        what = "requires grad" if missing.requires_grad else "does not require grad"
        yield facts.label("leaf_made_here", site, f"{name} {what}")


def _original_leaf(facts: TraceIndex, missing: MissingGradient) -> Iterator[Label | None]:
    from tensorlens.analysis.lineage import leaf_above

    leaf = leaf_above(facts, missing.tensor, missing.read.index)
    use = None if leaf is None else facts.first_use(leaf)
    if leaf is not None and use is not None:
        yield facts.label("leaf_made_here", use.site, "the leaf that gradients go to is made here")


def _fixes(facts: TraceIndex, missing: MissingGradient, name: str) -> Iterator[Fix]:
    if not missing.is_leaf:
        yield fix(
            "keep the leaf under a name of its own: update it in place under `no_grad`, or create it as it is needed"
        )
    elif not missing.requires_grad:
        grad = with_method(name, "grad")
        yield fix(f"skip what is frozen, whose {grad} is None, or let it require grad before the forward pass")
    elif not missing.passes:
        yield fix("read the gradient after backward; before the first one there is none")
    elif missing.cut is not None:
        yield from cut_fixes(facts, missing.cut)
    else:
        yield fix(f"use {name} in what the loss is computed from, or skip gradients that are None")
