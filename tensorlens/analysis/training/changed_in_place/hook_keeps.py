"""Finds the lines of forward hooks that keep the output of a module as it is, without a copy of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.naming.syntax import called_name, last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.hook_functions import definition_of
from tensorlens.records.callbacks import Registration
from tensorlens.records.model import Span

FORWARD_HOOK, FORWARD_PRE_HOOK, _MODULE = "forward hook", "forward pre-hook", "module of a forward hook"
_SIZES = ("1d", "2d", "3d")
_OPS = {
    **{f"{kind}{size}": op for size in _SIZES for kind, op in (
        ("BatchNorm", "batch_norm"), ("InstanceNorm", "instance_norm"), ("Conv", f"conv{size}"),
        ("ConvTranspose", f"conv_transpose{size}"))},
    "SyncBatchNorm": "batch_norm", "Linear": "linear", "Bilinear": "bilinear", "LayerNorm": "layer_norm",
    "GroupNorm": "group_norm", "RMSNorm": "rms_norm", "Embedding": "embedding",
}  # fmt: skip
"""The op that makes the output of a module of a class."""

_MAKE_NEW = frozenset(f"{kind}Pool{size}" for kind in ("Max", "Avg", "AdaptiveAvg", "AdaptiveMax") for size in _SIZES)
_KEEPING = frozenset("append appendleft extend insert setdefault put __setitem__ setattr __setattr__".split())
_VIEWS = frozenset(
    "detach data view view_as reshape flatten unflatten transpose permute movedim squeeze unsqueeze t T mT cpu to "
    "float contiguous unbind split chunk narrow select numpy".split()
)
"""Methods and attributes of a tensor whose result may have its memory."""

_READING = frozenset(
    "isinstance len type print str repr int float bool id getattr hasattr max min sum abs range format".split()
)
_COLLECTIONS = frozenset("tuple list dict zip enumerate reversed".split())
_LIBRARIES = frozenset("torch F nn functional math np numpy".split())
_COMPREHENSIONS = ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Scope = Function | ast.Module


@dataclass(frozen=True, slots=True)
class KeptOutput:
    """A forward hook that keeps what its module returns."""

    registration: Registration
    function: Function
    output: str  # its parameter that is the output
    span: Span  # the code that keeps it
    of: str  # the class of the module; "" if no op of PyTorch is known to make its output
    op: str  # that op


def kept_views(facts: TraceIndex) -> Iterator[KeptOutput]:
    """Yields the hooks that keep the output of their module, or a view of it, and that return nothing."""
    classes = _classes(facts)
    for each in _registrations(facts):
        found = definition_of(facts, each.function)
        if found is None or each.kind != FORWARD_HOOK or _returns(found[1]):
            continue
        file, function = found
        output, of = _output(facts, each, function) or "", classes.get(each.target, "")
        for node in keeping(function, {output}, views=True):
            yield KeptOutput(each, function, output, facts.span_of(node, file), of, _OPS.get(of, ""))


def kept_outputs(facts: TraceIndex) -> list[KeptOutput]:
    """Returns the hooks that keep the output itself of modules whose op is known.

    There is none if another hook may keep such a tensor, too: the argument of a later module, or the output of one
    that may return its argument.
    """
    classes, found = _classes(facts), list[KeptOutput]()
    for each in _registrations(facts):
        definition = definition_of(facts, each.function)
        if definition is None:
            return []
        file, function = definition
        of, output = classes.get(each.target, ""), _output(facts, each, function)
        is_plain = each.kind == FORWARD_HOOK and of in _OPS.keys() | _MAKE_NEW and output is not None
        others = {name for name in _parameters(function)[1:] if not is_plain or name != output}
        if function.args.vararg is not None or _may_keep(function, others):
            return []
        if is_plain and of in _OPS and output is not None and not _returns(function):
            for node in keeping(function, {output}, views=False):
                found.append(KeptOutput(each, function, output, facts.span_of(node, file), of, _OPS[of]))
    return found


def _registrations(facts: TraceIndex) -> list[Registration]:
    kinds = (FORWARD_HOOK, FORWARD_PRE_HOOK)
    return [each for each in facts.trace.callbacks.registrations if each.kind in kinds]


def _classes(facts: TraceIndex) -> dict[int | None, str]:
    """Maps the modules with forward hooks to the names of their classes, without those that the program defines."""
    callbacks = facts.trace.callbacks
    found = {each.target: callbacks.functions[each.function].name for each in callbacks.registrations
             if each.kind == _MODULE and each.target is not None}  # fmt: skip
    own = {node.name for _, tree in facts.trees() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    return {target: name.removeprefix("Lazy") for target, name in found.items() if name not in own}


def _parameters(function: Function) -> list[str]:
    """Returns the parameters of a function without a default, except `self`."""
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    names = names[: len(names) - len(function.args.defaults)]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def _output(facts: TraceIndex, registration: Registration, function: Function) -> str | None:
    """Returns the parameter of a forward hook that is the output: the last one that no `partial` names."""
    site = facts.node_at(registration.site)
    partials = (node for node in ast.walk(site) if called_name(node) == "partial") if site is not None else ()
    named = {keyword.arg for node in partials if isinstance(node, ast.Call) for keyword in node.keywords}
    names = [name for name in _parameters(function) if name not in named]
    return names[-1] if len(names) >= 3 and registration.kind == FORWARD_HOOK else None


def _returns(function: Function) -> bool:
    """Returns whether a hook may replace the output by what it returns."""
    if isinstance(function, ast.Lambda):
        return called_name(function.body) not in _KEEPING | {"update"} or called_name(function.body) == "setdefault"
    returned = (node.value for node in ast.walk(function) if isinstance(node, ast.Return))
    return any(value is not None and not isinstance(value, ast.Constant) for value in returned)


def keeping(function: Scope, names: set[str], views: bool) -> Iterator[ast.expr | ast.stmt]:
    """Yields the parts of a function that keep the value of a variable beyond its call, also by another name of it.

    `views`: also parts that keep a view of it, or that may keep it: the variable may have got another value before.
    """
    names, outer = set(names), _outer(function)
    for node in sorted(_parts(function), key=lambda each: (each.lineno, each.col_offset)):
        if isinstance(node, ast.Assign) and is_same(node.value, names, views):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
            if any(
                isinstance(each, ast.Attribute | ast.Subscript) or last_name(each) in outer for each in node.targets
            ):
                yield node
        elif isinstance(node, ast.Assign) and not views:
            names -= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AugAssign) and isinstance(node.value, ast.List | ast.Tuple):
            if is_same(node.value, names, views):
                yield node
        elif isinstance(node, ast.Call) and _is_keeping(node) and any(
            is_same(given, names, views) for given in _given(node)
        ):  # fmt: skip
            yield node


def _parts(function: Scope) -> Iterator[ast.expr | ast.stmt]:
    for node in own_nodes(function):
        if isinstance(node, ast.Assign | ast.AugAssign | ast.Call):
            yield node


def own_nodes(function: Scope) -> Iterator[ast.AST]:
    """Yields the parts of a function, or of a file, without those of functions and classes inside it."""
    found: list[ast.AST] = list(function.body) if isinstance(function.body, list) else [function.body]
    while found:
        node = found.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found += ast.iter_child_nodes(node)


def _outer(function: Scope) -> set[str]:
    """Returns the variables of functions around it, and of the file, that a function sets."""
    nodes = (node for node in ast.walk(function) if isinstance(node, ast.Global | ast.Nonlocal))
    return {name for node in nodes for name in node.names}


def _is_keeping(call: ast.Call) -> bool:
    """Returns whether a call puts its arguments into a list, a dict or an object."""
    if called_name(call) == "update":
        return bool(call.keywords) or isinstance(call.args[0] if call.args else None, ast.Dict)
    return called_name(call) in _KEEPING


def _given(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def is_same(node: ast.AST | None, names: set[str], views: bool) -> bool:
    """Returns whether an expression is the value of a variable, an item of it, or a collection with one of both.

    `views`: also a view of it.
    """
    match node:
        case ast.Name():
            return node.id in names
        case ast.Starred() | ast.NamedExpr() | ast.Await():
            return is_same(node.value, names, views)
        case ast.Subscript():
            return (views or isinstance(node.slice, ast.Constant)) and is_same(node.value, names, views)
        case ast.Attribute():
            return views and node.attr in _VIEWS and is_same(node.value, names, views)
        case ast.Call(func=ast.Attribute()) if views and last_name(node.func) in _VIEWS:
            return is_same(node.func, names, views)
        case ast.Call(func=ast.Name()) if last_name(node.func) in _COLLECTIONS:
            return any(is_same(given, names, views) for given in _given(node))
        case ast.IfExp():
            return is_same(node.body, names, views) or is_same(node.orelse, names, views)
        case ast.Tuple() | ast.List() | ast.Set():
            return any(is_same(each, names, views) for each in node.elts)
        case ast.Dict():
            return any(is_same(each, names, views) for each in node.values)
        case ast.ListComp() | ast.GeneratorExp() | ast.SetComp() | ast.DictComp():
            item = node.value if isinstance(node, ast.DictComp) else node.elt
            return is_same(item, names | _items(node, names, views), views)
    return False


def _items(node: _COMPREHENSIONS, names: set[str], views: bool) -> set[str]:
    """Returns the variables of a comprehension that are items of a variable's value."""
    targets = (each.target for each in node.generators if is_same(each.iter, names, views))
    return {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}


def _may_keep(function: Function, names: set[str]) -> bool:
    """Returns whether a function keeps one of some arguments, or gives one to a function that may."""
    names = same_names(function, names)
    return any(True for _ in keeping(function, names, views=True)) or any(
        gives_on(node, names) for node in _parts(function)
    )


def same_names(function: Scope, names: set[str]) -> set[str]:
    """Returns some variables of a function, with those that it gives the same values, or views of them."""
    names = set(names)
    for node in sorted(_parts(function), key=lambda each: (each.lineno, each.col_offset)):
        if isinstance(node, ast.Assign) and is_same(node.value, names, views=True):
            names |= {part.id for each in node.targets for part in ast.walk(each) if isinstance(part, ast.Name)}
    return names


def gives_on(call: ast.AST, names: set[str]) -> bool:
    """Returns whether a call gives a value to a function that is not known to only compute with it."""
    if not isinstance(call, ast.Call) or called_name(call) in _READING | _COLLECTIONS:
        return False
    root = call.func
    while isinstance(root, ast.Attribute):
        root = root.value
    if last_name(root) in _LIBRARIES or (isinstance(call.func, ast.Attribute) and is_same(root, names, views=True)):
        return False
    return any(is_same(given, names, views=True) for given in _given(call))
