"""Makes the edits for a module that gets new parameters later: its optimizer is made again, or its old parameters take
the values of a copy."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from tensorlens.analysis.code_around import function_around, statement_around, statement_at
from tensorlens.analysis.naming.assignments import assigned_pairs
from tensorlens.analysis.naming.syntax import last_name, plain_name
from tensorlens.analysis.naming.variables import owned_by
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.replaced_parameters import ReplacedParameter
from tensorlens.analysis.training.timeline import Training
from tensorlens.diagnostics.shared.edits.scopes import is_visible, names_in, receiver
from tensorlens.diagnostics.shared.edits.statements import inserted_after
from tensorlens.records.observations import Step
from tensorlens.records.report import Edit

_METHODS = ("step", "zero_grad", "state_dict")
_UNREAD = ("optim.", "Tensor.grad.", "Tensor.requires_grad")  # ops that don't use a parameter's values
_ASKING = ("parameters", "named_parameters", "weight", "bias")


@dataclass(frozen=True, slots=True)
class _Making:
    """An assignment that made an optimizer: `self.opt = make(self.net)`."""

    site: int
    target: str
    value: ast.expr
    file: str


def replacing_call(training: Training, step: Step, site: int | None) -> int | None:
    """Returns the site of the line that led to a replacement, in the innermost function that can name the optimizer."""
    making = _making(training, step)
    if making is None or site is None:
        return None
    chain = training.facts.call_chain(site)
    return next((each for each in chain if is_visible(training.facts, making.target, making.site, each)), None)


def made_again(training: Training, step: Step, sites: set[int]) -> Edit | None:
    """Adds the assignment that made an optimizer once more, below the line that led to the new parameters.

    Only if each name in it means the same there, and nothing else was given the optimizer.
    """
    facts, making = training.facts, _making(training, step)
    places = {replacing_call(training, step, site) for site in sites}
    spans = [facts.span(place) for place in places if place is not None]
    lines = {(span.file, span.line) for span in spans if span is not None}
    place = next(iter(places), None)
    if making is None or place is None or len(lines) != 1 or making.site in places:
        return None
    if _is_given_away(facts, making) or not takes_new_parameters(facts, making.value, making.file):
        return None
    if not all(_means_the_same(facts, name, making, place) for name in _names(making)):
        return None
    ((file, line),) = lines
    code = f"{making.target} = {facts.code_of(making.value, making.file)}"
    return None if "\n" in code else inserted_after(facts, file, line, code)


def _making(training: Training, step: Step) -> _Making | None:
    """Finds the assignment to the name that the optimizer has at its step."""
    facts, made = training.facts, training.optimizer_call(step)
    name = receiver(facts, step.site, "step")
    for site in () if made is None or name is None else facts.call_chain(made.site):
        span = facts.trace.sites[site].span
        node, statement = facts.names.syntax.node(span), statement_around(facts, span)
        if isinstance(node, ast.Call) and isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = next(
                (plain_name(left) for left, right in assigned_pairs(statement) if ast.dump(right) == ast.dump(node)),
                None,
            )
            return _Making(site, target, node, span.file) if target is not None and target == name else None
    return None


def _names(making: _Making) -> set[str]:
    """Returns the names that the value is made from: `self.net`, `make`."""
    attributes = [node for node in ast.walk(making.value) if isinstance(node, ast.Attribute)]
    inner = {id(node.value) for node in attributes}
    outer = [n for n in ast.walk(making.value) if isinstance(n, ast.Name | ast.Attribute) and id(n) not in inner]
    return {text for node in outer if (text := plain_name(node)) is not None}


def _means_the_same(facts: TraceIndex, name: str, making: _Making, place: int) -> bool:
    """Returns whether a name of the assignment can be written at a site, or is one of the file's own top level."""
    if is_visible(facts, name, making.site, place):
        return True
    other = facts.trace.sites[place]
    spans = facts.trace.sites[making.site].span, other.span
    local = set[str]().union(*(owned_by(function_around(facts, span.file, span.line)) for span in spans))
    return other.span.file == making.file and name.partition(".")[0] in _top_level(facts.tree(making.file)) - local


def _top_level(tree: ast.Module) -> set[str]:
    """Returns the functions, classes and imports at the top level of a file."""
    found: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    return found


def _is_given_away(facts: TraceIndex, making: _Making) -> bool:
    """Returns whether a line does more with the optimizer than to run its methods, which a new one has too.

    It may be in a list or in a schedule, it may have been given more parameters, or another learning rate.
    """
    last, is_attribute = making.target.rpartition(".")[2], "." in making.target
    for file, tree in facts.trees():
        nodes = list(ast.walk(tree))
        called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
        plain = {
            id(node.value)
            for node in nodes
            if isinstance(node, ast.Attribute) and id(node) in called and node.attr in _METHODS
        }
        for node in nodes:
            if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Load):
                continue
            is_it = (
                isinstance(node, ast.Attribute) if is_attribute else isinstance(node, ast.Name) and file == making.file
            )
            if is_it and last_name(node) == last and id(node) not in plain:
                return True
    return False


def takes_new_parameters(facts: TraceIndex, value: ast.AST | None, file: str) -> bool:
    """Returns whether the call that made an optimizer, run again, asks the modules for their parameters.

    It does not if it is given a variable that holds some: `params = list(net.parameters())`.
    """
    if not isinstance(value, ast.Call):
        return False
    nodes = list(ast.walk(facts.tree(file)))
    pairs = [pair for node in nodes if isinstance(node, ast.stmt) for pair in assigned_pairs(node)]
    pairs += [(node.target, node.value) for node in nodes if isinstance(node, ast.NamedExpr)]
    holding = {name for target, given in pairs for name in names_in(target, ast.Store) if _gives_tensors(given)}
    given = [*value.args[:1], *(each.value for each in value.keywords if each.arg in (None, "params"))]
    return holding.isdisjoint(set[str]().union(*(names_in(each, ast.Load) for each in given or [value])))


def _gives_tensors(value: ast.expr) -> bool:
    """Returns whether an expression may give parameters: it asks for them, or takes an attribute or item as it is."""
    asks = (n for n in ast.walk(value) if isinstance(n, ast.Attribute) and n.attr in _ASKING)
    return isinstance(value, ast.Attribute | ast.Subscript | ast.List | ast.Tuple) or any(True for _ in asks)


def loaded_into(training: Training, step: Step, group: list[ReplacedParameter]) -> tuple[Edit, str] | None:
    """Turns `model = copy.deepcopy(other)` into `model.load_state_dict(other.state_dict())`, and returns the new text.

    Only if the optimizer was made from `model.parameters()`, and each parameter fits into the old one.
    """
    facts, made, span = training.facts, training.optimizer_call(step), training.facts.span(group[0].site)
    statement = None if span is None else statement_at(facts, span.file, span.line)
    if span is None or made is None or group[0].site is None or not isinstance(statement, ast.Assign):
        return None
    target, source = plain_name(statement.targets[0]), _copied(statement.value)
    optimizer = facts.names.syntax.node(facts.trace.sites[made.site].span)
    if target is None or source in (None, target) or len(statement.targets) != 1 or len(group) < 2:
        return None
    if not isinstance(optimizer, ast.Call) or not optimizer.args or not all(each.copied for each in group):
        return None
    if is_old_used(facts, group):
        return None
    is_given = ast.unparse(optimizer.args[0]) == f"{target}.parameters()"
    fits = all(facts.tensor(each.old).shape == facts.tensor(each.new).shape for each in group)
    if not is_given or not fits or not is_visible(facts, target, made.site, group[0].site):
        return None
    code = f"{target}.load_state_dict({source}.state_dict())"
    return Edit(facts.span_of(statement, span.file), code), code


def is_old_used(facts: TraceIndex, group: list[ReplacedParameter]) -> bool:
    """Returns whether a line computes with an old parameter after it was replaced: that needs its values as they
    were."""
    first = {replaced.old: replaced.index for replaced in group}
    return any(
        call.index > first.get(access.tensor, call.index) and not call.within and not call.op.startswith(_UNREAD)
        for call in facts.calls
        for access in call.inputs
    )


def _copied(value: ast.expr) -> str | None:
    """Returns `other` of `copy.deepcopy(other)` or `copy.deepcopy(other).requires_grad_(True)`."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "requires_grad_":
        value = value.func.value
    if not isinstance(value, ast.Call) or len(value.args) != 1 or value.keywords:
        return None
    return plain_name(value.args[0]) if ast.unparse(value.func) in ("copy.deepcopy", "deepcopy") else None
