"""Makes the edits that switch gradients on again: without a decorator, or with a smaller `no_grad` block."""

from __future__ import annotations

import ast

from tensorlens.analysis.code_around import block_around, class_around, first_line, parent_of, statement_at
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.naming.variables import assigned_in, read_in
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.edits.statements import without_statement, wrapped
from tensorlens.records.model import Span
from tensorlens.records.report import Edit
from tensorlens.records.source import line_at


def without_decorator(facts: TraceIndex, span: Span) -> Edit | None:
    """Removes the decorator on the line of `span`.

    None if its function is called at several places, or computes several results: some may need no gradient.
    """
    text = facts.trace.sources.get(span.file, "")
    line = line_at(text, span.line)
    if not line.lstrip().startswith("@") or span.line != span.end_line:
        return None
    own = [node for node in ast.walk(facts.tree(span.file)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    function = next((f for f in own if any(d.lineno == span.line for d in f.decorator_list)), None)
    if function is None or not _is_chain([each for each in function.body if not _is_text(each)]):
        return None
    nodes = [node for _, tree in facts.trees() for node in ast.walk(tree)]
    is_module = function.name == "forward" and class_around(facts, span.file, function.lineno) is not None
    name = _module_name(facts, function, span.file) if is_module else function.name
    used = [n for n in nodes if isinstance(n, ast.Name | ast.Attribute) and isinstance(n.ctx, ast.Load)]
    called = {id(n.func) for n in nodes if isinstance(n, ast.Call)}
    places = [n for n in used if last_name(n) == name]
    if len([n for n in places if id(n) in called or not is_module]) != 1:
        return None
    return Edit(Span(span.file, span.line, 0, span.line + 1, 0), "")


def _module_name(facts: TraceIndex, function: ast.FunctionDef | ast.AsyncFunctionDef, file: str) -> str:
    """Returns the last name of a module by which lines call its `forward`."""
    first, last = function.lineno, function.end_lineno or function.lineno
    for site in facts.trace.sites:
        is_inside = site.function.endswith(".forward") and first <= site.span.line <= last and site.span.file == file
        caller = facts.span(site.caller) if is_inside else None
        node = None if caller is None else facts.names.syntax.node(caller)
        if isinstance(node, ast.Call):
            return last_name(node.func)
    return ""


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def only_around(facts: TraceIndex, span: Span, needed: set[int], ran: set[int]) -> tuple[Edit, ...]:
    """Turns gradients off for a while: `torch.set_grad_enabled(False)` becomes `with torch.no_grad():`.

    The block gets the statements that follow, up to the first one on a line of `needed`. The switch is left out if none
    of these is on a line of `ran`, where torch computed something.
    """
    statement = statement_at(facts, span.file, span.line)
    node = facts.names.syntax.node(span)
    if not isinstance(statement, ast.Expr) or statement.value is not node or not isinstance(node, ast.Call):
        return ()
    block = block_around(facts, span.file, statement)
    following = block[next((i for i, each in enumerate(block) if each is statement), len(block)) + 1 :]
    inside: list[ast.stmt] = []
    for each in following:
        if any(first_line(each) <= line <= (each.end_lineno or each.lineno) for line in needed):
            break
        inside.append(each)
    around = parent_of(facts, span.file, statement)
    if isinstance(around, ast.If) and around.body == [statement] and not around.orelse:
        return _switched(facts, span, around, node)
    if not any(_covers(each, line) for each in inside for line in ran):
        removed = without_statement(facts, span.file, span.line) if following else None
        return () if removed is None else (removed,)
    torch = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
    edits = wrapped(facts, span.file, inside[0].lineno, inside[-1].lineno, f"with {torch}.no_grad():")
    if edits is None or not torch:
        return ()
    begin, head = Span(span.file, statement.lineno, 0, statement.lineno + 1, 0), edits[0]
    indent = head.text.partition("with")[0]
    rest = (Edit(head.span, head.text.rpartition("\n")[2]), *edits[1:])
    return Edit(begin, f"{indent}with {torch}.no_grad():\n"), *rest


def _switched(facts: TraceIndex, span: Span, around: ast.If, call: ast.Call) -> tuple[Edit, ...]:
    """Turns gradients on too: `if phase == "val": torch.set_grad_enabled(False)` becomes
    `torch.set_grad_enabled(not phase == "val")`."""
    whole = facts.span_of(around, span.file)
    if whole.line != around.test.end_lineno or line_at(facts.trace.sources[span.file], whole.line).lstrip()[:2] != "if":
        return ()
    test = facts.code_of(around.test, span.file)
    text = f"not ({test})" if isinstance(around.test, ast.BoolOp | ast.IfExp | ast.NamedExpr) else f"not {test}"
    return (Edit(whole, f"{ast.unparse(call.func)}({text})"),)


def unwrapped(facts: TraceIndex, span: Span, needed: set[int]) -> tuple[Edit, ...]:
    """Takes the statements out of a `with` block, from the first one on a line of `needed` to the end of the block.

    None if the block has several context managers, or if strings go over several lines.
    """
    statement = statement_at(facts, span.file, span.line)
    if not isinstance(statement, ast.With) or len(statement.items) != 1 or statement.items[0].optional_vars is not None:
        return ()
    body = statement.body
    if statement.lineno != statement.items[0].context_expr.lineno or body[0].lineno == statement.lineno:
        return ()
    at = next((i for i, each in enumerate(body) if any(_covers(each, line) for line in needed)), None)
    if at is None:
        return ()
    if not _is_chain(body[at:]):
        return ()
    text = facts.trace.sources[span.file]
    first, last = first_line(body[at]), body[-1].end_lineno or body[-1].lineno
    shift = body[0].col_offset - statement.col_offset
    parts = [part for each in body for part in ast.walk(each) if isinstance(part, ast.Constant | ast.JoinedStr)]
    if any(part.lineno != part.end_lineno for part in parts):
        return ()
    edits = [Edit(Span(span.file, n, 0, n, shift), "") for n in range(first, last + 1) if line_at(text, n).strip()]
    if any(line_at(text, each.span.line)[:shift].strip() for each in edits):
        return ()
    head = [] if at else [Edit(Span(span.file, statement.lineno, 0, statement.lineno + 1, 0), "")]
    return (*head, *edits)


def _is_chain(statements: list[ast.stmt]) -> bool:
    """Returns whether each statement after the first uses what one before it assigns: all serve one result."""
    given = set[str]()
    for position, statement in enumerate(statements):
        if position and given.isdisjoint(read_in(statement)):
            return False
        given |= assigned_in(statement)
    return True


def _covers(statement: ast.stmt, line: int) -> bool:
    return first_line(statement) <= line <= (statement.end_lineno or statement.lineno)
