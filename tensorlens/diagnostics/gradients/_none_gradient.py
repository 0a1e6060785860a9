"""Explains a `.grad` that is None: read on a non-leaf, before backward, or after the path to it was cut."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.lineage import leaf_above, leaf_origin
from tensorlens.analysis.missing_gradient import MissingGradient, missing_gradient
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.gradients._nonleaf import nonleaf_fixes, nonleaf_reason
from tensorlens.diagnostics.shared.graph_cuts import cut_cause, cut_fixes, cut_labels, cut_reason
from tensorlens.diagnostics.shared.wording import finding, fix, named, severity_of, with_method
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
        f"{with_method(name, 'grad')} is None: {_cause(facts, missing, name)}",
        _why(facts, missing),
        _labels(facts, failure, missing, name),
        fixes=tuple(_fixes(facts, failure, missing, name)),
        evidence={"tensor": name, "is_leaf": missing.is_leaf, "backward_passes": len(missing.passes)},
    )


def _cause(facts: TraceIndex, missing: MissingGradient, name: str) -> str:
    if not missing.is_leaf:
        return f"{name} is computed, not a leaf"
    if not missing.requires_grad:
        return f"{name} does not require grad"
    if missing.cleared is not None:
        return "it was reset, and no backward pass has run since"
    if not missing.passes:
        return "no backward pass had run yet"
    if missing.cut is not None:
        return cut_cause(facts, missing.cut)
    return "no backward pass gave it a gradient" if missing.used else f"backward started from nothing that uses {name}"


def _why(facts: TraceIndex, missing: MissingGradient) -> str:
    if not missing.is_leaf:
        return nonleaf_reason(facts, missing.tensor, missing.read.index)
    if not missing.requires_grad:
        return "backward computes gradients only for tensors that require grad"
    if missing.cut is not None:
        return cut_reason(facts, missing.cut)
    return "the gradient of a leaf is None until a backward pass reaches the leaf"


def _labels(facts: TraceIndex, failure: Failure, missing: MissingGradient, name: str) -> Iterator[Label | None]:
    yield facts.label("needed_here", failure.site, f"{with_method(name, 'grad')} is None")
    if missing.cleared is not None:
        yield facts.label("cleared_here", missing.cleared.site, f"{with_method(name, 'grad')} is set to None")
    if missing.cut is not None:
        yield next(cut_labels(facts, missing.cut), None)
    producers = facts.producers(missing.tensor, missing.read.index)
    made = producers[0] if producers else facts.first_use(missing.tensor)
    site = None if made is None else made.site
    if not missing.is_leaf:
        yield facts.label("nonleaf_made_here", site, f"{name} is computed here: not a leaf")
        yield from _original_leaf(facts, missing)
    elif missing.requires_grad:
        born = leaf_origin(facts, missing.tensor, missing.read.index)
        yield facts.label("leaf_made_here", None if born is None else born.site, f"{name} requires grad")
    else:
        yield facts.label("leaf_made_here", site, f"{name} does not require grad")


def _original_leaf(facts: TraceIndex, missing: MissingGradient) -> Iterator[Label | None]:
    leaf = leaf_above(facts, missing.tensor, missing.read.index)
    use = None if leaf is None else facts.first_use(leaf)
    if leaf is not None and use is not None:
        yield facts.label("leaf_made_here", use.site, "the leaf that it is computed from")


def _fixes(facts: TraceIndex, failure: Failure, missing: MissingGradient, name: str) -> Iterator[Fix]:
    here, grad = facts.span(failure.site), with_method(name, "grad")
    if not missing.is_leaf:
        yield from nonleaf_fixes(facts, missing.tensor, missing.read.index)
    elif not missing.requires_grad:
        yield fix("leave out here what does not require grad: its `.grad` stays None", place=here)
        yield fix(f"or, if {name} is to be trained, let it require grad before the forward pass")
    elif missing.cleared is not None:
        yield fix(
            f"read {grad} before this line, or after the next backward pass", place=facts.span(missing.cleared.site)
        )
    elif not missing.passes:
        yield fix(f"read {grad} after the first backward pass, or skip it while it is None", place=here)
    elif missing.cut is not None:
        yield from cut_fixes(facts, missing.cut)
    else:
        yield fix(f"skip gradients that are None, if the loss need not depend on {name}", place=here)
        yield fix(f"or use {name} in what the loss is computed from")
