"""Finds the syntax node of a site, and the parts of it that are the operands of a call."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cached_property

from tensorlens.analysis.naming.code_text import OPERATORS, code_text
from tensorlens.analysis.naming.line_parts import LineParts, span_of
from tensorlens.records.model import Site, Span
from tensorlens.records.source import column_of, line_at, one_line, text_of, tree_of

_Key = tuple[int, int, int, int]
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_LOOPS = (ast.For, ast.AsyncFor, *_COMPREHENSIONS)
_CONVERSIONS = (".__bool__", ".__float__", ".__int__", ".__index__", ".__complex__")
_PLAIN = (ast.Name, ast.Attribute, ast.Subscript)
_NUMBERS = ("alpha", "dim")  # arguments that are no tensors


class Syntax:
    """Finds syntax nodes by their span. It parses a file when it first needs it."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._sources = sources
        self.parts = LineParts(sources)
        self._files: dict[str, dict[_Key, ast.AST]] = {}
        self._direct: dict[tuple[int, str], bool] = {}  # by site and op
        self._imported: dict[str, frozenset[str]] = {}
        self._stored: dict[str, dict[tuple[str, str], int]] = {}
        self._whole: dict[str, set[_Key]] = {}

    def node(self, span: Span) -> ast.AST | None:
        """Returns the node that covers exactly `span`, if any."""
        return self._nodes(span.file).get((span.line, span.column, span.end_line, span.end_column))

    def _nodes(self, file: str) -> dict[_Key, ast.AST]:
        if file not in self._files:
            self._files[file] = _index(self._sources.get(file, ""))
        return self._files[file]

    def is_thrown_away(self, span: Span) -> bool | None:
        """Returns whether nothing uses the value of the expression at `span`; None if a function returns the value.

        Nothing uses it if it is a whole statement, or if only names that nothing reads are assigned to it.
        """
        tree, node = tree_of(self._sources.get(span.file, "")), self.node(span)
        for statement in ast.walk(tree) if tree is not None and node is not None else ():
            value = getattr(statement, "value", None)
            if not isinstance(statement, ast.stmt) or value is None or self._key(value, span) != self._key(node, span):
                continue
            if isinstance(statement, ast.Return):
                return None
            targets = statement.targets if isinstance(statement, ast.Assign) else []
            read = self._names_read(span.file)
            unread = all(isinstance(t, ast.Name) and (t.id == "_" or t.id not in read) for t in targets)
            return isinstance(statement, ast.Expr) or (bool(targets) and unread)
        return False

    def _key(self, node: ast.AST | None, span: Span) -> _Key | None:
        keys = _keys(node, self._sources.get(span.file, "")) if isinstance(node, ast.expr) else ()
        return next(iter(keys), None)

    def _names_read(self, file: str) -> frozenset[str]:
        """Returns every name that a file reads."""
        nodes = self._nodes(file).values()
        return frozenset(node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))

    def loop_names(self) -> frozenset[str]:
        """Returns the variables of `for` statements."""
        return self._loop_names

    @cached_property
    def _loop_names(self) -> frozenset[str]:
        nodes = (node for file in self._sources for node in self._nodes(file).values())
        targets = (node.target for node in nodes if isinstance(node, ast.For | ast.AsyncFor))
        return frozenset(part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name))

    def first_stored(self, file: str, function: str, name: str) -> int | None:
        """Returns the first line of a function, or of the top level (`<module>`), that assigns to a name; None if none
        does."""
        if file not in self._stored:
            self._stored[file] = _first_stored(self._sources.get(file, ""))
        return self._stored[file].get((function, name))

    def is_head(self, site: Site) -> bool:
        """Returns whether the site is the head of a `with` or `for` statement, which has no value."""
        return isinstance(self.node(site.span), ast.With | ast.AsyncWith | ast.For | ast.AsyncFor)

    def is_whole_statement(self, site: Site) -> bool:
        """Returns whether the expression at `site` is a whole statement, so nothing uses its value."""
        if site.span.file not in self._whole:
            text = self._sources.get(site.span.file, "")
            values = [
                node.value for node in ast.walk(tree_of(text) or ast.Module([], [])) if isinstance(node, ast.Expr)
            ]
            self._whole[site.span.file] = {key for value in values for key in _keys(value, text)}
        span = site.span
        return (span.line, span.column, span.end_line, span.end_column) in self._whole[span.file]

    def is_direct(self, site: Site, op: str) -> bool:
        """Returns whether the expression at `site` is `op` itself, and not a module or library code that calls it."""
        known = self._direct.get((site.id, op))
        if known is None:
            known = self._direct[site.id, op] = self._is_direct(site, op)
        return known

    def _is_direct(self, site: Site, op: str) -> bool:
        if site.through:
            return False
        node = self.node(site.span)
        if isinstance(node, ast.Call):
            return last_name(node.func) == op.rpartition(".")[2] and self._is_function(node.func, op, site.span.file)
        if isinstance(node, _LOOPS):
            return op == "Tensor.unbind"
        if isinstance(node, ast.Subscript):
            return op.endswith("item__")
        if isinstance(node, ast.Attribute):
            return op.endswith((".__get__", ".__set__"))
        return node is not None and not isinstance(node, ast.Name)

    def _is_function(self, called: ast.expr, op: str, file: str) -> bool:
        """Returns whether what a call calls can be the op: not a module `self.linear` for `nn.functional.linear`."""
        if isinstance(called, ast.Name) or op.startswith("Tensor.") or ast.unparse(called).endswith(op):
            return True
        return self.is_imported(called, file)

    def is_imported(self, node: ast.expr, file: str) -> bool:
        """Returns whether a name, or what an attribute is of, is one that a file imports: `F.relu`."""
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if file not in self._imported:
            nodes = (node for node in self._nodes(file).values() if isinstance(node, ast.Import | ast.ImportFrom))
            names = (alias.asname or alias.name.partition(".")[0] for node in nodes for alias in node.names)
            self._imported[file] = frozenset(names)
        return isinstance(root, ast.Name) and root.id in self._imported[file]

    def reads(self, site: Site, op: str, name: str) -> bool:
        """Returns whether the expression at `site` reads the value of the tensor `name`: `float(x)`, `if x > 0`,
        `range(n)`.

        It does not if only library code that it calls reads the value.
        """
        node = self.node(site.span)
        if not isinstance(node, ast.Call):
            return not isinstance(node, ast.stmt) or isinstance(node, ast.Assert | ast.If | ast.While)
        if self.is_direct(site, op) or last_name(node.func) == {
            "__bool__": "bool",
            "__float__": "float",
            "__int__": "int",
        }.get(op.rpartition(".")[2]):
            return True
        return any(ast.unparse(part) == name for part in _call_operands(node, method=True))

    def is_call(self, site: Site) -> bool:
        """Returns whether the expression at `site` is a call."""
        return isinstance(self.node(site.span), ast.Call)

    def unpacked(self, site: Site) -> tuple[str, ...]:
        """Returns the names that take the items of the tensor unpacked at `site`: `q, k, v = qkv`, `for row in
        table`."""
        node = self.node(site.span)
        if isinstance(node, ast.Tuple | ast.List) and isinstance(node.ctx, ast.Store):
            names = [plain_name(part) for part in node.elts]
            return tuple(name for name in names if name) if all(names) else ()
        loop = _loop(node)
        name = plain_name(loop.target) if loop else None
        return (name,) if name else ()

    def augmented(self, site: Site) -> tuple[str, str] | None:
        """Returns the name and operator of an augmented assignment at `site`: `x` and `*` for `x *= 2`."""
        node = self.node(site.span)
        if not isinstance(node, ast.AugAssign) or isinstance(node.target, ast.Subscript):
            return None
        name = plain_name(node.target)
        return None if name is None else (name, OPERATORS[type(node.op)])

    def value_span(self, site: Site) -> Span:
        """Returns the span of the expression that makes the value at `site`; for a loop, that of what it iterates
        over."""
        loop = _loop(self.node(site.span))
        return site.span if loop is None else span_of(loop.iter, self._sources[site.span.file], site.span.file)

    def text(self, span: Span, limit: int) -> str:
        """Returns the expression at `span` on one line of at most `limit` characters, without backticks."""
        node, whole = self.node(span), text_of(self._sources.get(span.file, ""), span)
        is_long = len(whole) > limit or "\n" in whole
        text = code_text(node, limit) if is_long and isinstance(node, ast.expr) else one_line(whole, limit)
        return text.replace("`", "'")

    def operands(self, site: Site, op: str) -> list[ast.expr]:
        """Returns the parts of the expression at `site` that can be inputs of `op`, in order; none if library code ran
        `op`."""
        node = self.node(site.span)
        if op.endswith(_CONVERSIONS) and not isinstance(node, ast.Call):
            return []  # `if x[0] > 2:` reads the truth of the comparison, not of its parts
        if isinstance(node, ast.Call) and self.is_direct(site, op):
            return list(_call_operands(node, method=op.startswith("Tensor.")))
        if isinstance(node, ast.BinOp):
            return list(_parts([node.left, node.right]))
        if isinstance(node, ast.AugAssign):
            return list(_parts([node.target, node.value]))
        if isinstance(node, ast.UnaryOp):
            return list(_parts([node.operand]))
        if isinstance(node, ast.Compare):
            return list(_parts([node.left, *node.comparators]))
        if isinstance(node, ast.Subscript | ast.Attribute) and self.is_direct(site, op):
            return [node.value]
        return []


def plain_name(node: ast.expr) -> str | None:
    """Returns `out`, `model.fc.weight` or `xs[0]` as text; None for an expression that computes something."""
    inner: ast.expr = node
    while isinstance(inner, ast.Attribute | ast.Subscript):
        if isinstance(inner, ast.Subscript) and not isinstance(inner.slice, ast.Constant | ast.Name):
            return None
        inner = inner.value
    return ast.unparse(node) if isinstance(inner, ast.Name) and isinstance(node, _PLAIN) else None


def _loop(node: ast.AST | None) -> ast.For | ast.AsyncFor | ast.comprehension | None:
    if isinstance(node, _COMPREHENSIONS):
        return node.generators[0]
    return node if isinstance(node, ast.For | ast.AsyncFor) else None


def last_name(node: ast.AST | None) -> str:
    """Returns the last part of a name: `Linear` of `nn.Linear`; "" for an expression that is no name."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def called_name(node: ast.AST | None) -> str:
    """Returns the last part of the name that a call calls; "" for another expression."""
    return last_name(node.func) if isinstance(node, ast.Call) else ""


def _call_operands(node: ast.Call, method: bool) -> Iterator[ast.expr]:
    if method and isinstance(node.func, ast.Attribute) and not _is_torch(node.func.value):
        yield node.func.value
    yield from _parts([*node.args, *(each.value for each in node.keywords if each.arg not in _NUMBERS)])


def _is_torch(node: ast.expr) -> bool:
    """Returns whether a method is called on a module or a class, not on a tensor: `torch.Tensor.add(a, b)`."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in {"torch", "Tensor", "F", "nn"}


def _parts(nodes: list[ast.expr]) -> Iterator[ast.expr]:
    for node in nodes:
        if isinstance(node, ast.List | ast.Tuple):
            yield from _parts(node.elts)
        elif not isinstance(node.operand if isinstance(node, ast.UnaryOp) else node, ast.Constant):
            yield node  # not a number such as -1


def _index(text: str) -> dict[_Key, ast.AST]:
    tree = tree_of(text)
    if tree is None:
        return {}
    index: dict[_Key, ast.AST] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.expr | ast.stmt):
            for key in _keys(node, text):
                if isinstance(node, ast.expr) or key not in index:
                    index[key] = node
    return index


def _first_stored(text: str) -> dict[tuple[str, str], int]:
    """Returns the first line that assigns to a name, by function (`<module>`, `Net.forward`) and name."""
    first: dict[tuple[str, str], int] = {}
    tree = tree_of(text)
    waiting: list[tuple[str, str, ast.AST]] = [("<module>", "", tree)] if tree else []  # function, prefix, node
    while waiting:
        function, prefix, node = waiting.pop()
        name = node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else None
        name = node.arg if isinstance(node, ast.arg) else name
        if name is not None and isinstance(node, ast.Name | ast.arg):
            first[function, name] = min(node.lineno, first.get((function, name), node.lineno))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function = prefix + node.name
            prefix = f"{function}.<locals>."
        elif isinstance(node, ast.ClassDef):
            function, prefix = prefix + node.name, f"{prefix}{node.name}."
        if not isinstance(node, ast.Lambda | ast.comprehension):
            waiting += [(function, prefix, child) for child in ast.iter_child_nodes(node)]
    return first


def _keys(node: ast.expr | ast.stmt, text: str) -> Iterator[_Key]:
    end_line, end = node.end_lineno or node.lineno, node.end_col_offset or 0
    end_column = column_of(line_at(text, end_line), end)
    yield node.lineno, column_of(line_at(text, node.lineno), node.col_offset), end_line, end_column
    attribute = node.func if isinstance(node, ast.Call) else node
    if isinstance(attribute, ast.Attribute) and attribute.end_lineno != attribute.value.lineno:
        # for a method call that spans lines, CPython reports the position of the attribute's name
        line = attribute.end_lineno or attribute.lineno
        column = column_of(line_at(text, line), attribute.end_col_offset or 0) - len(attribute.attr)
        yield line, column, end_line, end_column
