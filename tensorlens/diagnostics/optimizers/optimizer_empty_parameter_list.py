"""Finds the cause of `optimizer-empty-parameter-list`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import function_around, statement_at
from tensorlens.analysis.naming.places import place_of
from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.edits.registration import registered
from tensorlens.diagnostics.shared.wording import finding, fix, op_text, severity_of
from tensorlens.records.model import Call, Failure
from tensorlens.records.report import Diagnostic, Edit, Fix, Label

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
        listed = _listed(facts, failure)
        text = "call `parameters()` again here, or keep the parameters in a list: `list(...)`"
        yield fix(text, *(() if listed is None else (listed,)), place=here)
    elif hidden:
        where = made[0].span if made else here
        text = "keep layers in a `torch.nn.ModuleList` or `ModuleDict`, tensors to train as `torch.nn.Parameter`"
        yield fix(text, *_registered(facts, failure), place=where)
    else:
        yield fix("look at what is left of the parameters here: a filter may leave none", place=here)


def _listed(facts: TraceIndex, failure: Failure) -> Edit | None:
    """Makes a list of the parameters in the only line of the function that gives the iterator its name."""
    generator = next((value for value in failure.values if value.type == "generator" and value.name), None)
    here = facts.span(failure.site)
    if generator is None or here is None:
        return None
    scope = function_around(facts, here.file, here.line)
    found = [
        node
        for node in ast.walk(facts.tree(here.file))
        if isinstance(node, ast.Assign) and [plain_name(target) for target in node.targets] == [generator.name]
        and function_around(facts, here.file, node.lineno) is scope
    ]  # fmt: skip
    if len(found) != 1:
        return None
    value = found[0].value
    return Edit(facts.span_of(value, here.file), f"list({facts.code_of(value, here.file)})")


def _registered(facts: TraceIndex, failure: Failure) -> tuple[Edit, ...]:
    """Registers the attributes that hold the parameters, in the class whose method made each."""
    edits: dict[Edit, None] = {}
    for access in failure.inputs:
        use = facts.first_use(access.tensor)
        function = "" if use is None else place_of(facts.trace.sites[use.site])[1]
        name = None if use is None else _attribute(facts, use)
        module = function.rpartition(".")[0].rpartition(".")[2]
        is_parameter = facts.tensor(access.tensor).type == "Parameter"
        edit = None if name is None else registered(facts, module, name, is_parameter)
        if edit is None:
            return ()
        edits[edit] = None
    return tuple(edits)


def _attribute(facts: TraceIndex, made: Call) -> str | None:
    """Returns the name that a line gives a parameter: "layers[0].weight" for `self.layers = [nn.Linear(2, 2)]`."""
    span = facts.trace.sites[made.site].span
    statement, node = statement_at(facts, span.file, span.line), facts.names.syntax.node(span)
    target: str | None = None
    if isinstance(statement, ast.Assign):
        target = plain_name(statement.targets[0])
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        target = (plain_name(statement.value.func) or "").removesuffix(".append")
    if target is None or not target.startswith("self.") or not isinstance(node, ast.Call):
        return None
    attribute = target.removeprefix("self.")
    if isinstance(statement, ast.Assign) and statement.value is node:
        return attribute
    return f"{attribute}[0]" if ast.unparse(node.func).endswith("Parameter") else f"{attribute}[0].weight"
