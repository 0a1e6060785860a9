"""Finds the statements of a source file and their blocks, and which statements run equally often."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tensorlens.analysis.naming.line_parts import span_of
from tensorlens.records.model import Site, Span
from tensorlens.records.source import tree_of

LOOPS = (ast.For, ast.AsyncFor, ast.While)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_JUMPS = (ast.Break, ast.Continue, ast.Return, ast.Raise, ast.Yield, ast.YieldFrom)
_SEVERAL = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda)


@dataclass(frozen=True, slots=True, eq=False)
class Statement:
    """A statement, or the head of a compound statement. The head of a `for` counts as run once for each iteration."""

    node: ast.stmt
    above: Statement | None  # the compound statement around it
    block: tuple[ast.stmt, ...]  # the list of statements that contains it
    file: str

    @property
    def is_for(self) -> bool:
        return isinstance(self.node, ast.For | ast.AsyncFor)

    @property
    def is_with(self) -> bool:
        return isinstance(self.node, ast.With | ast.AsyncWith)

    def around(self) -> Iterator[Statement]:
        """Yields the compound statements around it inside its function, the innermost first."""
        above = self.above
        while above is not None and not isinstance(above.node, SCOPES):
            yield above
            above = above.above

    @property
    def is_once(self) -> bool:
        """Returns whether it runs only once, with its file: at the top level and in no loop."""
        return [self, *self.around()][-1].above is None and not self.is_in_loop

    @property
    def is_in_loop(self) -> bool:
        """Returns whether a loop of its function repeats it."""
        return any(isinstance(each.node, LOOPS) for each in (self, *self.around()))

    def together(self) -> tuple[ast.stmt, ...]:
        """Returns the other statements that run as often as this one if nothing raises.

        These are the statements of its block, as far as no jump comes between; for a `for`, those of its body.
        """
        if any(isinstance(each.node, ast.Try) for each in self.around()):
            return ()
        if self.is_for:
            return _until_jump(getattr(self.node, "body", ()))
        at = next(place for place, node in enumerate(self.block) if node is self.node)
        before = _until_jump(self.block[:at][::-1], inclusive=False)
        after = () if jumps(self.node) else _until_jump(self.block[at + 1 :])
        return before + after


def _until_jump(nodes: Sequence[ast.stmt], inclusive: bool = True) -> tuple[ast.stmt, ...]:
    """Returns the statements before the first one that may jump away; if `inclusive`, also that one: it begins to
    run."""
    reached: list[ast.stmt] = []
    for node in nodes:
        if jumps(node):
            return (*reached, *([node] if inclusive else []))
        reached.append(node)
    return tuple(reached)


def jumps(node: ast.AST) -> bool:
    """Returns whether a statement may jump out of its block. Jumps in a function that it defines do not count."""
    if isinstance(node, (*_JUMPS, ast.Try)):
        return True
    return not isinstance(node, (*SCOPES, ast.Lambda)) and any(map(jumps, ast.iter_child_nodes(node)))


class Blocks:
    """Finds the statements around sites. It parses a file when it first needs it."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._sources = sources
        self._by_line: dict[str, dict[int, list[tuple[Span, Statement]]]] = {}
        self._conditional: dict[str, set[Span]] = {}

    def statement(self, site: Site) -> Statement | None:
        """Returns the innermost statement around a site."""
        span = site.span
        if span.file not in self._by_line:
            self._by_line[span.file] = _statements(self._sources.get(span.file, ""), span.file)
        innermost = None
        for place, statement in self._by_line[span.file].get(span.line, ()):
            if (place.line, place.column) <= (span.line, span.column) < (place.end_line, place.end_column):
                innermost = statement  # outer ones come first
        return innermost

    def is_computed(self, site: Site) -> bool:
        """Returns whether each run of its statement computes the expression at a site exactly once.

        That is not so in a comprehension, a lambda, an operand that may be skipped, or the head of a `for`.
        """
        if site.span.file not in self._conditional:
            text = self._sources.get(site.span.file, "")
            self._conditional[site.span.file] = set(_conditional(text, site.span.file))
        begin, end = (site.span.line, site.span.column), (site.span.end_line, site.span.end_column)
        return not any(
            (part.line, part.column) <= begin and end <= (part.end_line, part.end_column)
            for part in self._conditional[site.span.file]
        )


def _statements(text: str, file: str) -> dict[int, list[tuple[Span, Statement]]]:
    by_line: dict[int, list[tuple[Span, Statement]]] = defaultdict(list)
    tree = tree_of(text)

    def add(parent: ast.AST, above: Statement | None) -> None:
        for _, block in ast.iter_fields(parent):
            if not isinstance(block, list):
                continue
            statements = tuple(block)
            for node in block:
                if isinstance(node, ast.stmt):
                    statement = Statement(node, above, statements, file)
                    span = span_of(node, text, file)
                    for line in range(span.line, span.end_line + 1):
                        by_line[line].append((span, statement))
                    add(node, statement)
                elif isinstance(node, ast.ExceptHandler | ast.match_case):
                    add(node, above)

    if tree is not None:
        add(tree, None)
    return by_line


def _conditional(text: str, file: str) -> Iterator[Span]:
    """Yields the spans of expressions that one run of their statement may skip or repeat."""
    for node in ast.walk(tree_of(text) or ast.Module([], [])):
        parts: list[ast.expr] = []
        if isinstance(node, _SEVERAL):
            parts = [node]
        elif isinstance(node, ast.IfExp):
            parts = [node.body, node.orelse]
        elif isinstance(node, ast.BoolOp):
            parts = node.values[1:]
        elif isinstance(node, ast.Compare):
            parts = node.comparators[1:]
        elif isinstance(node, ast.Assert):
            parts = [node.msg] if node.msg else []
        elif isinstance(node, ast.For | ast.AsyncFor):
            parts = [node.iter, node.target]
        yield from (span_of(part, text, file) for part in parts)
