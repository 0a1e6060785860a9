"""Makes the edit that registers what a module keeps in a list, a dictionary or a plain attribute."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import function_around
from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.edits.statements import inserted_after, module_name
from tensorlens.records.report import Edit

_METHODS = {
    "ModuleList": ("append", "extend", "insert"),
    "ParameterList": ("append", "extend"),
    "ModuleDict": ("keys", "items", "values", "pop", "update", "clear"),
    "ParameterDict": ("keys", "items", "values", "pop", "update", "clear", "get", "setdefault"),
}
"""What PyTorch's containers can do, of what lists and dictionaries can."""

_ADDING = ("append", "extend", "insert", "update", "setdefault")
_TAKEN = frozenset(
    "add_module apply bfloat16 buffers children clear compile copy cpu cuda double eval extra_repr float forward "
    "fromkeys get half ipu items keys load_state_dict modules mtia named_buffers named_children named_modules "
    "named_parameters parameters pop popitem register_buffer register_module register_parameter requires_grad_ "
    "setdefault share_memory state_dict to to_empty train training type update values xpu zero_grad".split()
)
"""Names that an attribute of a module has already."""


def registered(facts: TraceIndex, module: str, name: str, is_parameter: bool) -> Edit | None:
    """Wraps what a class assigns to an attribute: `self.hidden = [...]` becomes `self.hidden = nn.ModuleList([...])`.

    `name` is the name of one of the tensors, `hidden[0].weight`; `is_parameter` is False for a plain tensor. Where the
    program does with the attribute what PyTorch's containers can't do, an attribute of its own has the modules. None if
    the class has no such assignment or several, if the attribute is inside another, or if an item may be no module.
    """
    attribute, _, inside = name.partition("[")
    if "." in attribute:
        return None
    for file, tree in facts.trees():
        values = _assigned(tree, module, attribute)
        prefix = module_name(facts, file, "torch.nn") or _below(module_name(facts, file, "torch"))
        if len(values) != 1 or prefix is None:
            continue
        value, kind, span = values[0], _kind(values[0], inside, is_parameter), facts.span_of(values[0], file)
        if kind is None or _is_before_init(facts, file, value):
            return None
        wrapped = Edit(span, f"{prefix}.{kind}({facts.code_of(value, file)})")
        if kind == "Parameter":
            return wrapped
        if not _holds_only(facts, module, attribute, value, inside) or _grows(facts, attribute) is None:
            return None
        if _is_used_as(facts, attribute, kind) and _fits(facts, module, attribute, value, kind):
            return wrapped
        if _grows(facts, attribute) is not False:
            return None
        held, items = kind.removesuffix("List").removesuffix("Dict"), ".values()" if kind.endswith("Dict") else ""
        own = f"self.{attribute}_{held.lower()}s = {prefix}.{held}List(self.{attribute}{items})"
        return inserted_after(facts, file, span.line, own)
    return None


def _is_before_init(facts: TraceIndex, file: str, value: ast.expr) -> bool:
    """Returns whether a module gets a value before the constructor of `nn.Module` has run: it then takes no other
    module."""
    function = function_around(facts, file, value.lineno)
    calls = (node for node in ast.walk(function) if isinstance(node, ast.Call)) if function is not None else ()
    return any(node.lineno > value.lineno and ast.unparse(node.func).endswith(".__init__") for node in calls)


def _holds_only(facts: TraceIndex, module: str, attribute: str, value: ast.expr, inside: str) -> bool:
    """Returns whether each item of a written out container is a call that makes it, or had a parameter in this run."""
    if inside.partition("]")[2][:1] == "[":
        return False  # a list or tuple in it
    known = set(_keys(facts, module, attribute))
    if isinstance(value, ast.ListComp | ast.DictComp):
        return _is_made(value.elt if isinstance(value, ast.ListComp) else value.value)
    if isinstance(value, ast.Dict):
        pairs = zip((getattr(key, "value", None) for key in value.keys), value.values, strict=True)
        return all(_is_made(item) or repr(key) in known for key, item in pairs)
    return all(_is_made(item) or str(at) in known for at, item in enumerate(getattr(value, "elts", [])))


def _grows(facts: TraceIndex, attribute: str) -> bool | None:
    """Returns whether the program adds items to an attribute; None if one of them may be no module."""
    grows = False
    for _, tree in facts.trees():
        for node in ast.walk(tree):
            target: ast.expr | None = node.target if isinstance(node, ast.AugAssign) else None
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                target = node.value
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ADDING:
                target = node.func.value
            if getattr(target, "attr", None) != attribute:
                continue
            grows, given = True, node.args[-1:] if isinstance(node, ast.Call) else []
            if any(isinstance(each, ast.Attribute | ast.Lambda | ast.Tuple) for each in given):
                return None
    return grows


def _is_made(item: ast.expr) -> bool:
    """Returns whether an item is the result of a call, or None, which a list of modules can hold."""
    if isinstance(item, ast.IfExp):
        return _is_made(item.body) and _is_made(item.orelse)
    return isinstance(item, ast.Call) or (isinstance(item, ast.Constant) and item.value is None)


def _keys(facts: TraceIndex, module: str, attribute: str) -> Iterator[str]:
    """Yields the keys and positions, as they are written, of the items that hold a tensor that is not registered."""
    for entry in facts.trace.inspection.unregistered:
        owner, _, inside = entry.name.partition("[")
        if entry.module == module and owner == attribute:
            yield inside.partition("]")[0]


def _is_used_as(facts: TraceIndex, attribute: str, kind: str) -> bool:
    """Returns whether the program only does with an attribute what PyTorch's container of a kind can do."""
    for _, tree in facts.trees():
        for node in ast.walk(tree):
            parts = [each for each in ast.iter_child_nodes(node) if getattr(each, "attr", None) == attribute]
            if parts and isinstance(node, ast.Attribute) and node.attr not in _METHODS[kind]:
                return False
            if parts and isinstance(node, ast.BinOp):
                return False
            if parts and isinstance(node, ast.Call) and plain_name(node.func) in ("isinstance", "type"):
                return False
    return True


def _fits(facts: TraceIndex, module: str, attribute: str, value: ast.expr, kind: str) -> bool:
    """Returns whether a module can have submodules named as the keys of a dictionary."""
    if kind.endswith("List"):
        return True
    keys = [key.value for key in value.keys if isinstance(key, ast.Constant)] if isinstance(value, ast.Dict) else []
    names = [*_keys(facts, module, attribute), *map(repr, keys)]
    return all(name[:1] in "'\"" and name[1:-1].isidentifier() and name[1:-1] not in _TAKEN for name in names)


def _below(torch: str | None) -> str | None:
    return None if torch is None else f"{torch}.nn"


def _kind(value: ast.expr, inside: str, is_parameter: bool) -> str | None:
    """Returns the class that holds the value: "ModuleList", "ParameterDict", "Parameter"."""
    if not inside:
        return None if is_parameter else "Parameter"
    held = "Module" if "]." in f"[{inside}" else "Parameter"
    if held == "Parameter" and not is_parameter:
        return None  # a list of plain tensors would need a parameter for each
    if isinstance(value, ast.List | ast.ListComp | ast.Tuple) or _called(value) in ("list", "tuple"):
        return f"{held}List"
    is_dict = isinstance(value, ast.Dict | ast.DictComp) or _called(value) == "dict"
    return f"{held}Dict" if is_dict else None


def _called(value: ast.expr) -> str | None:
    return plain_name(value.func) if isinstance(value, ast.Call) else None


def _assigned(tree: ast.Module, module: str, attribute: str) -> list[ast.expr]:
    """Returns the values that a class assigns to an attribute of its objects."""
    classes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == module)
    return [
        node.value
        for found in classes
        for node in ast.walk(found)
        if isinstance(node, ast.Assign) and [plain_name(target) for target in node.targets] == [f"self.{attribute}"]
    ]
