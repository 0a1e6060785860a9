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
        why = "a generator yields its items once, and this one was consumed before the optimizer read it"
    elif hidden:
        why = (
            f"the module holds {hidden} {'tensor' if hidden == 1 else 'tensors'} to train where `parameters()` does not"
            " look: it finds a `Parameter` or a `Module` in an attribute, not what is in a list or a plain tensor"
        )
    return finding(
        CODE,
        severity_of(failure),
        f"{op_text(failure.op or 'optim.Optimizer')} was given no parameters",
        why,
        [facts.label("optimizer_made_here", failure.site, "no parameters arrive here"), *_made(facts, failure, spent)],
        fixes=tuple(_fixes(spent, hidden)),
        evidence={"exhausted": spent, "unregistered": hidden},
    )


def _made(facts: TraceIndex, failure: Failure, spent: bool) -> Iterator[Label | None]:
    named = [value for value in failure.values if value.name]
    if spent:
        generator = next((value for value in named if value.type == "generator"), None)
        if generator is not None:
            text = f"`{generator.name}` is used up here"
            yield facts.label("value_made_here", generator.site if generator.used is None else generator.used, text)
        return
    for access in failure.inputs:
        use = facts.first_use(access.tensor)
        text = "made here, and not registered as a parameter of the module"
        yield facts.label("value_made_here", None if use is None else use.site, text)
    if not failure.inputs:
        for value in named[:1]:  # the optimizer takes its parameters first
            yield facts.label("value_made_here", value.site, f"`{value.name}` is made here: a {value.type}")


def _fixes(spent: bool, hidden: int) -> Iterator[Fix]:
    if spent:
        yield fix("call `parameters()` again for the optimizer, or keep the parameters in a list: `list(...)`")
    elif hidden:
        yield fix("keep layers in `torch.nn.ModuleList` or `ModuleDict`, and tensors to train as `torch.nn.Parameter`")
    else:
        yield fix("look at what is left of the parameters before the optimizer: a filter may leave none")
