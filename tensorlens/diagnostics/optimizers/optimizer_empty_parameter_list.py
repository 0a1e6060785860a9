"""Finds the cause of `optimizer-empty-parameter-list`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.wording import finding, fix, op_text, severity_of
from tensorlens.records.model import Failure
from tensorlens.records.report import Diagnostic, Fix, Label

CODE = "optimizer-empty-parameter-list"


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    for failure in facts.failures(CODE):
        yield explain(facts, failure)


def explain(facts: TraceIndex, failure: Failure) -> Diagnostic:
    """Reports why the optimizer was given no parameter.

    An iterator was consumed, `parameters()` does not find the tensors, or the list is empty.
    """
    spent = any(value.type == "exhausted generator" for value in failure.values)
    hidden = len(failure.inputs)
    why = "none of the tensors that it was given, or that its iterator yielded, is a parameter"
    if spent:
        why = "a generator yields its items once, and something had used this one up before"
    elif hidden:
        why = (
            f"`parameters()` finds a `Parameter` or a `Module` in an attribute; {_tensors(hidden)} of the module "
            f"{'is' if hidden == 1 else 'are'} in a list, a dictionary or a plain attribute"
        )
    made = [label for label in _made(facts, failure, spent) if label is not None]
    return finding(
        CODE,
        severity_of(failure),
        f"{op_text(failure.op or 'optim.Optimizer')} was given no parameters",
        why,
        [facts.label("optimizer_made_here", failure.site, "no parameters arrive here"), *made],
        fixes=tuple(_fixes(facts, failure, made, hidden if not spent else -1)),
        evidence={"exhausted": spent, "unregistered": hidden},
    )


def _tensors(count: int) -> str:
    return "1 tensor" if count == 1 else f"{count} tensors"


def _made(facts: TraceIndex, failure: Failure, spent: bool) -> Iterator[Label | None]:
    named = [value for value in failure.values if value.name]
    if spent:
        generator = next((value for value in named if value.type == "generator"), None)
        if generator is not None:
            text = f"uses `{generator.name}` up"
            yield facts.label("value_made_here", generator.site if generator.used is None else generator.used, text)
        return
    for access in failure.inputs:
        use = facts.first_use(access.tensor)
        text = "made here; `parameters()` does not find it"
        yield facts.label("value_made_here", None if use is None else use.site, text)
    if not failure.inputs:
        for value in named[:1]:  # the optimizer takes its parameters first
            yield facts.label("value_made_here", value.site, f"makes `{value.name}`: a {value.type}")


def _fixes(facts: TraceIndex, failure: Failure, made: list[Label], hidden: int) -> Iterator[Fix]:
    """Suggests what to change. `hidden` counts the tensors that `parameters()` does not find; -1: a generator is used
    up."""
    here = facts.span(failure.site)
    if hidden < 0:
        yield fix("call `parameters()` again here, or keep the parameters in a list: `list(...)`", place=here)
    elif hidden:
        where = made[0].span if made else here
        text = "keep layers in a `torch.nn.ModuleList` or `ModuleDict`, tensors to train as `torch.nn.Parameter`"
        yield fix(text, place=where)
    else:
        yield fix("look at what is left of the parameters here: a filter may leave none", place=here)
