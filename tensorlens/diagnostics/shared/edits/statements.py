"""Makes the edits of a help that add, move, wrap or leave out whole statements.

Every function returns None where the syntax leaves doubt: a line with two statements, a string over several lines in
a block whose indentation would change. The edits use the indentation of the statement that they are beside.
"""

from __future__ import annotations

import ast
import tokenize
from io import StringIO

from tensorlens.analysis.code_around import block_around, first_line, statement_at, statements_in
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Span
from tensorlens.records.report import Edit
from tensorlens.records.source import line_at, lines_of


def inserted_before(facts: TraceIndex, file: str, line: int, code: str) -> Edit | None:
    """Adds the lines of `code` before the statement at a line."""
    statement = _alone(facts, file, line)
    if statement is None:
        return None
    place = first_line(statement)
    indent = _indent(facts, file, place)
    return Edit(Span(file, place, 0, place, 0), "".join(f"{indent}{each}\n" for each in code.split("\n")))


def inserted_after(facts: TraceIndex, file: str, line: int, code: str) -> Edit | None:
    """Adds the lines of `code` after the statement at a line, outside its block if it has one."""
    statement = _alone(facts, file, line)
    if statement is None:
        return None
    indent = _indent(facts, file, first_line(statement))
    return Edit(_end_of(facts, file, statement), "".join(f"\n{indent}{each}" for each in code.split("\n")))


def block_lines(facts: TraceIndex, file: str, statement: ast.stmt) -> str | None:
    """Returns the lines of a statement without the indentation of its block; None if it shares a line."""
    if not is_alone(facts, file, statement):
        return None
    first, last = first_line(statement), statement.end_lineno or statement.lineno
    indent, lines = _indent(facts, file, first), [_line(facts, file, n) for n in range(first, last + 1)]
    if _has_long_string(facts, file, first, last) or any(n.strip() and not n.startswith(indent) for n in lines):
        return None
    return "\n".join(line.removeprefix(indent) for line in lines)


def is_alone(facts: TraceIndex, file: str, statement: ast.stmt) -> bool:
    """Returns whether a statement begins its line and shares its lines with no other."""
    return _alone(facts, file, first_line(statement)) is statement


def without_statement(facts: TraceIndex, file: str, line: int) -> Edit | None:
    """Leaves a statement out, with its line. None if its block would be empty."""
    statement = _alone(facts, file, line)
    if statement is None or len(block_around(facts, file, statement)) < 2:
        return None
    first, last = first_line(statement), statement.end_lineno or statement.lineno
    if last < len(_lines(facts, file)):
        return Edit(Span(file, first, 0, last + 1, 0), "")
    return Edit(Span(file, first - 1, len(_line(facts, file, first - 1)), last, len(_line(facts, file, last))), "")


def moved_after(facts: TraceIndex, file: str, line: int, target: int) -> tuple[Edit, ...] | None:
    """Moves the statement at a line below the statement at line `target`, into the block of that one."""
    return _moved(facts, file, line, inserted_after(facts, file, target, _MOVED))


def moved_before(facts: TraceIndex, file: str, line: int, target: int) -> tuple[Edit, ...] | None:
    """Moves the statement at a line above the statement at line `target`, into the block of that one."""
    return _moved(facts, file, line, inserted_before(facts, file, target, _MOVED))


_MOVED = "\0"


def _moved(facts: TraceIndex, file: str, line: int, added: Edit | None) -> tuple[Edit, ...] | None:
    removed, statement = without_statement(facts, file, line), _alone(facts, file, line)
    if added is None or removed is None or statement is None:
        return None
    first, last = first_line(statement), statement.end_lineno or statement.lineno
    old, new = _indent(facts, file, first), added.text.strip("\n").removesuffix(_MOVED)
    if first <= added.span.line <= last or (old != new and _has_long_string(facts, file, first, last)):
        return None
    lines = [_line(facts, file, n) for n in range(first, last + 1)]
    if any(each.strip() and not each.startswith(old) for each in lines):
        return None
    text = "\n".join(new + each.removeprefix(old) if each.strip() else each for each in lines)
    return removed, Edit(added.span, added.text.replace(new + _MOVED, text))


def wrapped(facts: TraceIndex, file: str, first: int, last: int, header: str) -> tuple[Edit, ...] | None:
    """Puts the statements from the one at line `first` to the one at line `last`, of one block, under `header`.

    `header` is `with torch.no_grad():`, say. None if the two are in different blocks.
    """
    begin, end = _alone(facts, file, first), _alone(facts, file, last)
    if begin is None or end is None or not any(each is end for each in block_around(facts, file, begin)):
        return None
    top, bottom = first_line(begin), end.end_lineno or end.lineno
    if bottom < top or _has_long_string(facts, file, top, bottom):
        return None
    outer, inner = indents(facts, file, top)
    more = inner.removeprefix(outer)
    head = Edit(Span(file, top, 0, top, 0), f"{outer}{header}\n{more}")
    rest = [Edit(Span(file, n, 0, n, 0), more) for n in range(top + 1, bottom + 1) if _line(facts, file, n).strip()]
    return head, *rest


def module_name(facts: TraceIndex, file: str, module: str) -> str | None:
    """Returns the name under which a file imports a module at its top: `torch`, or `F` of `torch.nn.functional`."""
    for node in facts.tree(file).body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == module and (alias.asname or "." not in module):
                    return alias.asname or module
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if f"{node.module}.{alias.name}" == module:
                    return alias.asname or alias.name
    return None


def _alone(facts: TraceIndex, file: str, line: int) -> ast.stmt | None:
    """Returns the statement at a line if it begins its line and shares its lines with no other."""
    statement = statement_at(facts, file, line)
    if statement is None:
        return None
    first, last = first_line(statement), statement.end_lineno or statement.lineno
    if isinstance(statement, ast.If) and _line(facts, file, first).lstrip().startswith("elif"):
        return None
    inside = {id(each) for each in ast.walk(statement)}
    around = (
        other
        for other in statements_in(facts, file)
        if id(other) not in inside and other.lineno <= last and (other.end_lineno or other.lineno) >= first
    )
    if any(other.lineno == first or all(each is not statement for each in ast.walk(other)) for other in around):
        return None
    return statement


def indents(facts: TraceIndex, file: str, line: int) -> tuple[str, str]:
    """Returns the indentation of a line, and that of a block below it: with a tab where the line has tabs."""
    outer = _indent(facts, file, line)
    return outer, outer + ("\t" if "\t" in outer else "    ")


def _indent(facts: TraceIndex, file: str, line: int) -> str:
    text = _line(facts, file, line)
    return text[: len(text) - len(text.lstrip())]


def _end_of(facts: TraceIndex, file: str, statement: ast.stmt) -> Span:
    """Returns the empty span at the end of a statement's last line, after a comment."""
    last = statement.end_lineno or statement.lineno
    column = len(_line(facts, file, last))
    return Span(file, last, column, last, column)


def _has_long_string(facts: TraceIndex, file: str, first: int, last: int) -> bool:
    """Returns whether a string goes over several lines between two lines: another indentation would change it."""
    try:
        tokens = list(tokenize.generate_tokens(StringIO("\n".join(_lines(facts, file))).readline))
    except (tokenize.TokenError, SyntaxError):
        return True
    long = (token for token in tokens if token.type != tokenize.NEWLINE and "\n" in token.string.strip("\n"))
    return any(token.start[0] <= last and token.end[0] >= first for token in long)


def _lines(facts: TraceIndex, file: str) -> tuple[str, ...]:
    return lines_of(facts.trace.sources.get(file, ""))


def _line(facts: TraceIndex, file: str, line: int) -> str:
    return line_at(facts.trace.sources.get(file, ""), line)
