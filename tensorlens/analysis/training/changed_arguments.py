"""Finds modules that change their argument in place, as `nn.ReLU(inplace=True)`, where the caller reads it again.

So do functions of the script that change a tensor which they are given, and return it as if it were a new one.
"""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.code_around import function_around, parent_of, scope_around, statement_at
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.timeline import Training
from tensorlens.records.model import Call, Span

ACTIVATIONS = frozenset(
    "relu relu6 leaky_relu elu selu celu hardtanh hardswish hardsigmoid silu mish threshold rrelu dropout "
    "alpha_dropout feature_alpha_dropout dropout1d dropout2d dropout3d".split()
)
_SAME_TWICE = frozenset("relu relu6 hardtanh threshold".split())
_SHAPING = frozenset(
    "view view_as reshape flatten transpose permute movedim squeeze unsqueeze t T mT swapaxes detach data".split()
)
_STORING = frozenset("setitem copy index_copy scatter index_put masked_scatter".split())
_MAX_CALLS = 64  # after the change, until the reader is found
_MAX_CHANGES = 4  # of one line that are looked at
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Scope = _Function | ast.Module


@dataclass(frozen=True, slots=True)
class ChangedArgument:
    """An in-place change inside a module or function, and a call of the function that called it, which reads the
    argument afterwards."""

    change: Call
    reader: Call
    name: str  # what the function calls the argument, where it is read
    made: Span | None  # the only place of the class that says `inplace=True`
    given: Span | None = None  # where a function of the script is given the argument


def changed_arguments(training: Training) -> Iterator[ChangedArgument]:
    """Yields these pairs, one for each line that calls such a module or function."""
    facts = training.facts
    looks: Counter[int] = Counter()
    found: set[Span] = set()
    for place, change in enumerate(facts.calls):
        if not change.writes or change.within or looks[change.site] >= _MAX_CHANGES:
            continue
        looks[change.site] += 1
        each = _of_module(facts, place) if op_name(change) in ACTIVATIONS else _of_function(training, place)
        if each is None:
            continue
        looks[change.site] = _MAX_CHANGES
        if each.given is None or each.given not in found:
            found |= {each.given} if each.given is not None else set()
            yield each


def _of_module(facts: TraceIndex, place: int) -> ChangedArgument | None:
    """Finds the reader of what an activation of a module has changed."""
    span = facts.span(facts.calls[place].site)
    node = None if span is None else facts.names.syntax.node(span)
    if span is None or not isinstance(node, ast.Call):
        return None
    if len(node.args) != 1 or (says_so(node) and not _is_for_another(facts, span.file, node)):
        return None
    found = _reader(facts, place, (span, node), node.args[0])
    if found is None or (says_so(node) and not meets_graph(facts, found[0])):
        return None  # a check of what the line says that it changes
    return ChangedArgument(facts.calls[place], *found, _made(facts, span))


def _is_for_another(facts: TraceIndex, file: str, node: ast.Call) -> bool:
    """Returns whether a function that an option lets work in place, as `F.relu(x, inplace=True)`, is used as if its
    result were another tensor: it gets another name, or is the argument of a call."""
    around, given = parent_of(facts, file, node), node.args[0]
    if last_name(node.func).endswith("_"):
        return False
    if isinstance(around, ast.Assign):
        names = [each.id for each in around.targets if isinstance(each, ast.Name)]
        return len(names) == len(around.targets) and isinstance(given, ast.Name) and given.id not in names
    return isinstance(around, ast.Call) and node in around.args


def _of_function(training: Training, place: int) -> ChangedArgument | None:
    """Finds the reader of what a function of the script has changed and returned. The parameters of a model, which a
    function may be meant to change, are left out."""
    facts, change = training.facts, training.facts.calls[place]
    span, outer = facts.span(change.site), facts.trace.sites[change.site].caller
    at = facts.span(outer)
    node = None if at is None else facts.names.syntax.node(at)
    function = None if span is None else function_around(facts, span.file, span.line)
    if span is None or at is None or function is None or not isinstance(node, ast.Call) or says_so(node):
        return None
    statement = statement_at(facts, span.file, span.line)
    changed = None if statement is None else _changed(statement)
    given = None if changed is None or not _returns(function, changed) else given_to(function, node, changed)
    memory = facts.storage_of(change.writes[0].tensor, change.index)
    if given is None or _stores(facts, change):
        return None
    if any(facts.storage_of(number, change.index) == memory for number in training.leaves):
        return None
    found = _reader(facts, place, (at, node), given)
    is_used = found is not None and meets_graph(facts, found[0])
    return ChangedArgument(change, *found, None, at) if found is not None and is_used else None


def meets_graph(facts: TraceIndex, reader: Call) -> bool:
    """Returns whether a call with a graph, as that of a loss, reads what a call reads, or what is computed from it."""
    first = bisect_left(facts.calls, reader.index, key=lambda call: call.index)
    results = set[int]()
    for call in facts.calls[first : first + _MAX_CALLS]:
        if call is reader or any(access.tensor in results for access in call.inputs):
            if call.nodes[1] > call.nodes[0]:
                return True
            results |= {access.tensor for access in call.outputs}
    return False


def _stores(facts: TraceIndex, change: Call) -> bool:
    """Returns whether a change writes what a model has computed, or other numbers, into a tensor, as into a cache."""
    others = [access.tensor for access in change.inputs if access.tensor != change.writes[0].tensor]
    if op_name(change) in _STORING and any(facts.tensor(each).dtype != "bool" for each in others):
        return True  # what is no mask may be the values
    return any(facts.requires_grad(number, change.index - 1) for number in others)


def _reader(facts: TraceIndex, place: int, called: tuple[Span, ast.Call], given: ast.expr) -> tuple[Call, str] | None:
    """Returns a call below that of a module or function which reads the changed argument, and the name of it there."""
    (span, node), change = called, facts.calls[place]
    scope = scope_around(facts, span.file, span.line)
    if isinstance(parent_of(facts, span.file, node), ast.Expr):
        return None
    names, without = _names(scope, node, given), list[ast.AST | None]([node])
    storage = facts.storage_of(change.writes[0].tensor, change.index)
    for reader in facts.calls[place + 1 : place + 1 + _MAX_CALLS] if names else ():
        at = facts.span(reader.site)
        if at is None or at.file != span.file or scope_around(facts, at.file, at.line) is not scope:
            continue
        if (at.line, at.column) == (span.line, span.column) and at.end_column == span.end_column:
            continue  # a layer of the same module
        if at.line < span.line:
            return None  # the next round of a loop, or the next call of the function
        known = [name for name in names if not _is_set_between(scope, name, span.line, at.line)]
        read = [name for name in known if _reads(facts.names.syntax.node(at), name, without)]
        if read and any(facts.storage_of(access.tensor, reader.index) == storage for access in reader.inputs):
            if op_name(reader) != op_name(change) or op_name(change) not in _SAME_TWICE:
                return reader, read[0]
            without.append(facts.names.syntax.node(at))  # its result is the one of the unchanged values
    return None


def _changed(statement: ast.stmt) -> str | None:
    """Returns the variable whose memory a statement changes: `x` of `x += 1`, `x[0] = 1` and `x[0].zero_()`."""
    target: ast.expr | None = None
    if isinstance(statement, ast.AugAssign):
        target = statement.target
    elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
        target = statement.targets[0]
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        target = statement.value
    while target is not None and not isinstance(target, ast.Name):
        inner = target.func if isinstance(target, ast.Call) else target
        target = inner.value if isinstance(inner, ast.Attribute | ast.Subscript) else None
    return target.id if target is not None else None


def _returns(function: _Function, name: str) -> bool:
    """Returns whether a function gives back the tensor that a variable has, and nothing else."""
    returned = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
    return bool(returned) and all(isinstance(value, ast.Name) and value.id == name for value in returned)


def given_to(function: _Function, call: ast.Call, name: str) -> ast.expr | None:
    """Returns the argument of a call that a variable of the called function is."""
    named = next((each.value for each in call.keywords if each.arg == name), None)
    places = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    if named is not None or name not in places:
        return named
    place = places.index(name) - (places[0] in ("self", "cls"))
    return call.args[place] if 0 <= place < len(call.args) else None


def says_so(node: ast.AST | None) -> bool:
    """Returns whether the call itself says that it changes its argument, as `x.relu_()` does."""
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name.endswith("_") or any(keyword.arg == "inplace" for keyword in node.keywords)


def _names(scope: _Scope, call: ast.Call, given: ast.expr) -> list[str]:
    """Returns the variables of a scope that are the argument of a call, or that the argument is a view of."""
    if not isinstance(given, ast.Name):
        return []
    names = [given.id]
    assigned = [node for node in ast.walk(scope) if isinstance(node, ast.Assign) and node.lineno < call.lineno]
    for node in sorted(assigned, key=lambda each: each.lineno):
        targets = [target.id for target in node.targets if isinstance(target, ast.Name)]
        if isinstance(node.value, ast.Name) and node.value.id == given.id:
            names += targets
        elif given.id in targets and (whole := _whole(node.value)) is not None:
            names.append(whole)
    return names


def _whole(node: ast.expr) -> str | None:
    """Returns the variable that an expression has all elements of, maybe in another shape."""
    while not isinstance(node, ast.Name):
        method = node.func if isinstance(node, ast.Call) else node
        if not isinstance(method, ast.Attribute) or method.attr not in _SHAPING:
            return None
        node = method.value
    return node.id


def _is_set_between(scope: _Scope, name: str, first: int, last: int) -> bool:
    """Returns whether a line of a scope sets a variable, from one line to the one before another."""
    stored = (node for node in ast.walk(scope) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    return any(node.id == name and first <= node.lineno < last for node in stored)


def _reads(reader: ast.AST | None, name: str, calls: list[ast.AST | None]) -> bool:
    """Returns whether an expression reads a variable outside some calls, as the one that has changed it."""
    inside = {id(node) for call in calls if call is not None for node in ast.walk(call)}
    nodes = ast.walk(reader) if reader is not None else ()
    return any(isinstance(node, ast.Name) and node.id == name and id(node) not in inside for node in nodes)


def _made(facts: TraceIndex, span: Span) -> Span | None:
    """Returns the only place of a file that says `inplace=True`."""
    found = [
        node
        for node in ast.walk(facts.tree(span.file))
        if isinstance(node, ast.Call)
        and any(
            keyword.arg == "inplace" and isinstance(keyword.value, ast.Constant) and keyword.value.value is True
            for keyword in node.keywords
        )
    ]
    lines = {node.lineno for node in found}
    return facts.span_of(found[0], span.file) if len(lines) == 1 else None
