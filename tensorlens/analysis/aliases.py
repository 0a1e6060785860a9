"""Decides whether a written tensor has other users: then a name that is given a new tensor would leave them the old
one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import function_around, scope_around
from tensorlens.analysis.naming.places import place_of
from tensorlens.analysis.naming.syntax import last_name, plain_name
from tensorlens.analysis.saved_tensors import shares_memory
from tensorlens.analysis.shared_frame import is_local
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Call

_STORING = frozenset("append appendleft add extend insert put push setdefault update register_buffer".split())
_KEEPING = frozenset("dict list tuple set setattr".split())  # functions whose result has their arguments in it
_FRESH = (ast.Call, ast.List, ast.ListComp, ast.BinOp)  # nothing else refers to their value
_DISPLAYS = (ast.Tuple, ast.List, ast.Set, ast.Dict)


def is_only_user(facts: TraceIndex, write: Call, written: int, name: str) -> bool:
    """Returns whether everything that reads a written tensor later reads it as `name`, in the function of the write.

    `name` is a variable of that function, or an attribute. It is not if the tensor shares memory with an older one, if
    another name or a container refers to it, or if it is an argument whose caller may read it.
    """
    root, _, attribute = name.rpartition(".")
    if not name.replace(".", "_").isidentifier() or facts.tensor(written).type == "Parameter":
        return False
    if name in facts.names.syntax.loop_names() or _is_alias(facts, written):
        return False
    if _has_other_name(facts, write, written, name) or _is_read_otherwise(facts, write, written, name):
        return False
    if root:
        return not any(_escapes(tree, attribute, is_attribute=True) for _, tree in facts.trees())
    span = facts.trace.sites[write.site].span
    function, scope = function_around(facts, span.file, span.line), scope_around(facts, span.file, span.line)
    if any(isinstance(node, ast.Global | ast.Nonlocal) and name in node.names for node in ast.walk(scope)):
        return False
    if _escapes(scope, name, is_attribute=False) or not is_local(facts, write.site, name):
        return False
    if function is None or not any(arg.arg == name for arg in ast.walk(function.args) if isinstance(arg, ast.arg)):
        return True
    if _is_made_in(facts, written, write.site):
        return True
    return _replaces_argument(facts, function, name)


def is_plain_variable(facts: TraceIndex, site: int, name: str) -> bool:
    """Returns whether a name is a variable of the function at a site that no line there gives to another name or a
    container."""
    span = facts.trace.sites[site].span
    scope = scope_around(facts, span.file, span.line)
    if any(isinstance(node, ast.Global | ast.Nonlocal) and name in node.names for node in ast.walk(scope)):
        return False
    return is_local(facts, site, name) and not _escapes(scope, name, is_attribute=False)


def replaces_variable(facts: TraceIndex, site: int, name: str) -> bool:
    """Returns whether a variable of the function at a site can get another list: nothing else refers to the old one."""
    span = facts.trace.sites[site].span
    function, scope = function_around(facts, span.file, span.line), scope_around(facts, span.file, span.line)
    if _escapes(scope, name, is_attribute=False) or not is_local(facts, site, name):
        return False
    if function is None:
        return True
    is_argument = any(arg.arg == name for arg in ast.walk(function.args) if isinstance(arg, ast.arg))
    return _replaces_argument(facts, function, name) if is_argument else True


def _is_alias(facts: TraceIndex, number: int) -> bool:
    """Returns whether a tensor was made from another one in the same memory."""
    made = facts.creator(number)
    if facts.tensor(number).base is not None:
        return True
    return made is not None and any(
        access.tensor != number and shares_memory(facts, access.tensor, number) for access in made.inputs
    )


def _is_made_in(facts: TraceIndex, number: int, site: int) -> bool:
    """Returns whether a line of the function at a site made a tensor, itself or in a function that it calls."""
    made = facts.creator(number)
    return made is not None and facts.site_in(facts.scope(site), made.site) is not None


def _has_other_name(facts: TraceIndex, write: Call, written: int, name: str) -> bool:
    """Returns whether another name referred to the tensor, or to an older one in its memory, when the run ended."""
    for binding in facts.trace.end.bindings:
        if binding.tensor != written and (
            not shares_memory(facts, binding.tensor, written)
            or (facts.tensor(binding.tensor).created_by or 0) > write.index
        ):
            continue
        if "." in name and binding.name.rpartition(".")[2] == name.rpartition(".")[2]:
            continue
        if binding.name != name or binding.scope != place_of(facts.trace.sites[write.site])[1]:
            return True
    return False


def _is_read_otherwise(facts: TraceIndex, write: Call, written: int, name: str) -> bool:
    """Returns whether a later call reads an older tensor in the memory, or the tensor on a line without its name."""
    here = facts.scope(write.site)
    attribute = name.rpartition(".")[2] if "." in name else ""
    for call in facts.calls:
        if call.index <= write.index:
            continue
        for access in call.inputs:
            if access.tensor != written:
                made = facts.tensor(access.tensor).created_by
                if shares_memory(facts, access.tensor, written) and (made is None or made < write.index):
                    return True
                continue
            own = call.site if attribute else facts.site_in(here, call.site)
            if own is not None and not _mentions(facts, own, name, attribute):
                return True
    return False


def _mentions(facts: TraceIndex, site: int, name: str, attribute: str) -> bool:
    node = facts.names.syntax.node(facts.trace.sites[site].span)
    if node is None:
        return False
    if attribute:
        return any(isinstance(each, ast.Attribute) and each.attr == attribute for each in ast.walk(node))
    return any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(node))


def _escapes(scope: ast.AST, name: str, is_attribute: bool) -> bool:
    """Returns whether code gives a name or an attribute to another name, to a container, or to the caller too early."""
    return any(_is_it(value, name, is_attribute) for value in _given_away(scope, is_attribute))


def _given_away(scope: ast.AST, with_returns: bool) -> Iterator[ast.expr]:
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and node.value is not None:
            yield from _items(node.value)
        elif isinstance(node, ast.Yield | ast.YieldFrom) or (with_returns and isinstance(node, ast.Return)):
            yield from _items(node.value) if node.value is not None else ()
        elif isinstance(node, ast.Call) and _stores(node.func):
            for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
                yield from _items(argument)


def _stores(function: ast.expr) -> bool:
    return last_name(function) in (_STORING if isinstance(function, ast.Attribute) else _KEEPING)


def _items(node: ast.expr) -> Iterator[ast.expr]:
    yield node
    if isinstance(node, ast.IfExp):
        yield from (*_items(node.body), *_items(node.orelse))
    if isinstance(node, ast.BinOp):  # `outs + [h]`
        for side in (node.left, node.right):
            yield from _items(side) if isinstance(side, _DISPLAYS) else ()
    if isinstance(node, _DISPLAYS):
        for item in node.values if isinstance(node, ast.Dict) else node.elts:
            yield from _items(item)


def _is_it(node: ast.expr, name: str, is_attribute: bool) -> bool:
    if is_attribute:
        return isinstance(node, ast.Attribute) and node.attr == name
    return isinstance(node, ast.Name) and node.id == name


def _replaces_argument(facts: TraceIndex, function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> bool:
    """Returns whether a function returns its argument `name`, and every call of it uses the result in its place."""
    returns = [node for node in ast.walk(function) if isinstance(node, ast.Return)]
    if len(returns) != 1 or returns[0] is not function.body[-1] or plain_name(returns[0].value or returns[0]) != name:  # type: ignore[arg-type]
        return False
    names = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args)]
    if name not in names or function.decorator_list:
        return False
    calls = list(_calls_of(facts, function.name))
    return bool(calls) and all(_is_replaced(*call, names.index(name), name) for call in calls)


def _calls_of(facts: TraceIndex, function: str) -> Iterator[tuple[ast.stmt, ast.Call, ast.AST]]:
    """Yields the calls of a function that is called by its name, with their statements and the code around them.

    The name in any other place, such as an argument, counts as a call whose result is not known.
    """
    for _, tree in facts.trees():
        for scope in (tree, *(n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))):
            for statement in _own_statements(scope):
                for node in _own_parts(statement):
                    if isinstance(node, ast.Call) and last_name(node.func) == function:
                        yield statement, node, scope
                    elif isinstance(node, ast.Name | ast.Attribute) and last_name(node) == function:
                        if not any(isinstance(n, ast.Call) and n.func is node for n in _own_parts(statement)):
                            yield statement, ast.Call(node, [], []), scope


def _own_statements(scope: ast.AST) -> Iterator[ast.stmt]:
    waiting: list[ast.AST] = list(getattr(scope, "body", ()))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.stmt):
            yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            waiting += [n for n in ast.iter_child_nodes(node) if isinstance(n, ast.stmt | ast.ExceptHandler)]


def _own_parts(statement: ast.stmt) -> Iterator[ast.AST]:
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += [n for n in ast.iter_child_nodes(node) if not isinstance(n, ast.stmt | ast.ExceptHandler)]


def _is_replaced(statement: ast.stmt, call: ast.Call, scope: ast.AST, position: int, name: str) -> bool:
    """Returns whether a caller no longer reads what it gave to the function, or gives the result its name."""
    if isinstance(statement, ast.Expr) and statement.value is call:
        return False
    offset = 1 if isinstance(call.func, ast.Attribute) and position > 0 and name else 0
    given = [keyword.value for keyword in call.keywords if keyword.arg == name]
    for at in {position, position - offset}:
        given += call.args[at : at + 1]
    if not given or any(isinstance(argument, ast.Starred) for argument in call.args):
        return False
    targets = [plain_name(target) for target in statement.targets] if isinstance(statement, ast.Assign) else []
    for argument in given:
        text = plain_name(argument)
        if isinstance(argument, _FRESH) or (text in targets and getattr(statement, "value", None) is call):
            continue
        if not isinstance(argument, ast.Name) or _is_read_later(scope, argument, statement):
            return False
    return True


def _is_read_later(scope: ast.AST, name: ast.Name, statement: ast.stmt) -> bool:
    """Returns whether a variable may be read after a statement: below it, or in a loop around it."""
    reads = [node for node in ast.walk(scope) if isinstance(node, ast.Name) and node.id == name.id and node is not name]
    loops = [n for n in ast.walk(scope) if isinstance(n, ast.For | ast.AsyncFor | ast.While)]
    is_repeated = any(statement in list(ast.walk(loop)) for loop in loops)
    return is_repeated or any(isinstance(n.ctx, ast.Load) and n.lineno >= statement.lineno for n in reads)
