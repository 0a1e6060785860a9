"""Explains a gradient that `autograd.grad`, or `inputs=`, asked for, and to which the graph has no path."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.known_history import is_whole
from tensorlens.analysis.lineage import MAX_DEEP, Cut, ancestry
from tensorlens.analysis.missing_gradient import cut_between
from tensorlens.analysis.plain_values import may_require_grad, takes_shape_only
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.backward_call._missing_paths import (
    OnceDifferentiable,
    TakenBeside,
    from_the_part,
    line_of_use,
    once_differentiable,
    part_text,
    taken_beside,
    twice_differentiable,
)
from tensorlens.diagnostics.shared.custom_function_runs import backward_runs, inputs_given_none
from tensorlens.diagnostics.shared.edits.statements import inserted_before
from tensorlens.diagnostics.shared.graph_cuts import cut_fixes
from tensorlens.diagnostics.shared.wording import finding, fix, named, severity_of, with_method
from tensorlens.records.callbacks import Run
from tensorlens.records.model import Backward, Call, Failure
from tensorlens.records.report import Diagnostic, Edit, Fix, Label


def find_requested(facts: TraceIndex, code: str, title: str, why: str) -> Iterator[Diagnostic]:
    """Reports the failures of `code`: which tensor has no gradient, and which operation computed the output."""
    for failure in facts.failures(code):
        event = facts.event(failure.index)
        requested = event.inputs if isinstance(event, Backward) else ()
        roots = [access.tensor for access in failure.inputs if access.tensor not in requested]
        root = roots[0] if roots else None
        number = _wanted(facts, failure, root, requested, code)
        given = None if number is None else _given_none(facts, failure, number)
        if given is not None and number is not None:
            yield _report_none(facts, failure, given, number)
            continue
        names = {"name": named(facts, number, failure.index), "root": named(facts, root, failure.index)}
        yield finding(
            code,
            severity_of(failure),
            title.format(**names),
            why.format(**names, this=_this(names["name"])),
            _labels(facts, failure, root, number),
            fixes=tuple(_fixes(facts, failure, root, number)),
            evidence=dict(names),
        )


def _this(name: str) -> str:
    """Returns how a sentence refers again to a tensor that has been named, or described if it has no name."""
    return f"this {name}" if name.startswith("`") else "this tensor"


def _given_none(facts: TraceIndex, failure: Failure, number: int) -> tuple[Run, Call] | None:
    """Finds the `backward` of a custom Function that returned None for the requested tensor in this pass."""
    event = facts.event(failure.index)
    since = event.started if isinstance(event, Backward) else failure.index
    runs = ((run, call) for run, call in backward_runs(facts) if since <= run.index <= failure.index)
    return next(((run, call) for run, call in runs if number in inputs_given_none(facts, run, call)), None)


def _report_none(facts: TraceIndex, failure: Failure, given: tuple[Run, Call], number: int) -> Diagnostic:
    run, call = given
    name, function = named(facts, number, failure.index), call.op.removesuffix(".apply")
    return finding(
        "unused-input-in-grad",
        severity_of(failure),
        f"the gradient of {name} was asked for, but `{function}.backward` returns None for it",
        "`autograd.grad()` takes a tensor that got only None for one that the result does not use",
        [
            facts.label("needed_here", failure.site, f"asks for the gradient of {name}"),
            facts.label("returned_here", run.returned, f"returns None for {name}"),
            facts.label("graph_built_here", call.site, f"`{function}` uses {name} here"),
        ],
        fixes=(
            fix(f"return the gradient for {name}, in its place", place=facts.span(run.returned)),
            fix("if it is to have none, pass `allow_unused=True`: it is then None", place=facts.span(failure.site)),
        ),
        evidence={"name": name, "function": function},
    )


def _wanted(facts: TraceIndex, failure: Failure, root: int | None, requested: tuple[int, ...], code: str) -> int | None:
    """Finds the requested tensor that PyTorch rejects.

    It does not require grad, or the root was not computed from its present value. If only one tensor was requested, it
    is that one. None if the trace shows too little of what the root was computed from.
    """
    if code == "input-does-not-require-grad":
        return next((n for n in requested if not facts.requires_grad(n, failure.index)), None)
    if root is None:
        return None
    above = list(ancestry(facts, root, failure.index, MAX_DEEP))
    used = {(access.tensor, access.version) for _, call in above for access in call.inputs}
    is_known = is_whole(facts, (root, failure.index), above)
    for number in requested:
        cut, _ = cut_between(facts, root, number, failure.index)
        state = facts.state(number, failure.index)
        if cut is not None or (is_known and (number, None if state is None else state.version) not in used):
            return number
    return requested[0] if len(requested) == 1 else None


def _labels(facts: TraceIndex, failure: Failure, root: int | None, number: int | None) -> Iterator[Label | None]:
    name, output = named(facts, number, failure.index), named(facts, root, failure.index)
    yield facts.label("needed_here", failure.site, f"asks for the gradient of {name}")
    once, beside, cut = _reasons(facts, failure, root, number)
    if once is not None:
        yield Label("graph_cut_here", once.decorator, f"the gradient of `{once.function}` has no graph")
    if cut is not None and not facts.same_line(cut.call.site, failure.site):
        yield facts.label("graph_cut_here", cut.call.site, "the gradient stops here")
    if number is not None:
        producers = facts.producers(number, failure.index)
        made = producers[0] if producers else facts.first_use(number)
        yield facts.label("leaf_made_here", None if made is None else made.site, f"{name} is made here")
    built = None if root is None else _built(facts, root, failure)
    if beside is not None:
        yield facts.label("graph_built_here", line_of_use(facts, failure, beside), part_text(facts, beside, output))
    elif built is not None:
        apart = cut is not None and not facts.same_line(cut.call.site, built.site)
        role = "value_made_here" if once is not None or apart else "graph_built_here"
        yield facts.label(role, built.site, f"{output} is computed here")


def _reasons(
    facts: TraceIndex, failure: Failure, root: int | None, number: int | None
) -> tuple[OnceDifferentiable | None, TakenBeside | None, Cut | None]:
    """Returns what the facts establish of the missing path: at most one of the three."""
    if root is None or number is None or not facts.requires_grad(number, failure.index):
        return None, None, None
    once = once_differentiable(facts, root, failure.index)
    cut = None if once is not None else cut_between(facts, root, number, failure.index)[0]
    if cut is not None and takes_shape_only(cut.call):
        cut = None
    is_open = once is None and cut is None
    return once, taken_beside(facts, root, number, failure.index) if is_open else None, cut


def _built(facts: TraceIndex, root: int, failure: Failure) -> Call | None:
    """Finds the last recorded operation that the root was computed by, if possible on a line other than the failing
    one."""
    span = facts.span(failure.site)
    recorded = [
        c for _, c in ancestry(facts, root, failure.index) if c.nodes[1] > c.nodes[0] or c.op == "autograd.grad"
    ]
    for call in recorded:
        where = facts.span(call.site)
        if span is not None and where is not None and where.line != span.line:
            return call
    return recorded[0] if recorded else None


def _fixes(facts: TraceIndex, failure: Failure, root: int | None, number: int | None) -> Iterator[Fix]:
    once, beside, cut = _reasons(facts, failure, root, number)
    here = facts.span(failure.site)
    if once is not None:
        yield twice_differentiable(facts, once)
    elif cut is not None:
        yield from cut_fixes(facts, cut)
    elif beside is not None:
        names = named(facts, number, failure.index), named(facts, root, failure.index)
        yield from from_the_part(facts, failure, beside, names)
    elif number is not None and not facts.requires_grad(number, failure.index):
        made = facts.first_use(number)
        flag = with_method(named(facts, number, failure.index), "requires_grad_()")
        edit = None if root is None else _required(facts, failure, root, number)
        yield fix(
            f"let it require grad before the forward pass: {flag}",
            *(edit,) if edit else (),
            place=None if made is None else facts.span(made.site),
        )
    else:
        yield fix(
            "ask for the tensor that the forward pass used, not for a copy or a later value of the name", place=here
        )
        yield fix(
            "if the result need not depend on it, pass `allow_unused=True`: its gradient is then None", place=here
        )


def _required(facts: TraceIndex, failure: Failure, root: int, number: int) -> Edit | None:
    """Lets a tensor require grad above the statement of the failing function that first computes with it."""
    if failure.site is None:
        return None
    here = facts.scope(failure.site)
    names = [b.name for b in facts.trace.end.bindings if b.tensor == number and b.scope == here[1]]
    if not names or not may_require_grad(facts.tensor(number)):
        return None
    users = [
        call
        for _, call in ancestry(facts, root, failure.index)
        if any(access.tensor == number for access in call.inputs)
    ]
    first = min(users, key=lambda call: call.index, default=None)
    span = None if first is None else facts.span(facts.site_in(here, first.site))
    return None if span is None else inserted_before(facts, span.file, span.line, f"{names[0]}.requires_grad_()")
