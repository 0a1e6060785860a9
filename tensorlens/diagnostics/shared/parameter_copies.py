"""Lets a forward pass compute with copies of parameters that are overwritten before its backward.

The gradients that reach the parameters stay the same: `clone()` passes them on.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import scope_around
from tensorlens.analysis.naming.line_parts import span_of
from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.saved_tensors import Save
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.edits.kept_copies import copies_for
from tensorlens.diagnostics.shared.edits.statements import module_name
from tensorlens.diagnostics.shared.kept import described, layer_class, operation
from tensorlens.diagnostics.shared.wording import fix
from tensorlens.records.model import Span
from tensorlens.records.report import Edit, Fix
from tensorlens.records.source import text_of

_MAX_LAYERS = 3


def with_copied_parameters(facts: TraceIndex, saves: list[Save], changed_at: int, below: int) -> Fix | None:
    """Rewrites the calls that keep overwritten tensors; None if one of them is not clear.

    `changed_at` is the site of the write. The call of the whole model is looked for above the site `below`.
    """
    save = saves[0]
    kept = copies_for(facts, saves, changed_at)
    if kept:
        place = None if save.call is None else facts.span(save.call.site)
        text = f"let {operation(facts, save.call)} keep a copy of {described(facts, save.tensor)}: no value changes"
        return fix(text, *kept, place=place)
    models = list(_model_calls(facts, saves, below)) or list(_only_calls(facts, saves))
    if any(_runs_inside(facts, changed_at, file, node) for file, node, _ in models):
        models = []  # the write would go to the copies
    calls = models or list(_layer_calls(facts, saves))
    made = [_functional(facts, file, node, model) for file, node, model in calls]
    if not made or None in made:
        return None
    edits = [edit for pair in made for edit in pair or ()]
    names = list(dict.fromkeys(f"`{name}`" for _, _, name in calls))
    owners = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    whose = "its" if len(names) == 1 else "their"
    return fix(f"let {owners} compute with copies of {whose} parameters: no value changes", *edits)


def _runs_inside(facts: TraceIndex, site: int, file: str, node: ast.Call) -> bool:
    """Returns whether a line ran inside a call, or is a line of it."""
    spans = (facts.trace.sites[each].span for each in facts.call_chain(site))
    return any(s.file == file and node.lineno <= s.line <= (node.end_lineno or node.lineno) for s in spans)


def _model_calls(facts: TraceIndex, saves: list[Save], at: int) -> Iterator[tuple[str, ast.Call, str]]:
    """Yields the call of the module that owns the parameters, in the function at a site, if it is the only one that
    can have kept them."""
    span, scope = facts.trace.sites[at].span, facts.trace.sites[at].function
    kept = {save.tensor for save in saves}
    owned = {b.name for b in facts.trace.end.bindings if b.tensor in kept and b.scope == scope}
    own = scope_around(facts, span.file, span.line)
    loops = [n for n in ast.walk(own) if isinstance(n, ast.For | ast.While) and _covers(n, span.line)]
    around: ast.AST = max(loops, key=lambda loop: loop.lineno, default=own)
    found = [
        (node, model)
        for node in ast.walk(around)
        if isinstance(node, ast.Call) and node.lineno < span.line
        if (model := plain_name(node.func)) and any(name.startswith(f"{model}.") for name in owned)
    ]
    if len(found) > 1:
        lines = {facts.trace.sites[site].span.line for save in saves for site in _way(facts, save, at)}
        direct = {save.call.site for save in saves if save.call is not None} & set(_sites_here(facts, saves, at))
        found = [each for each in found if direct and each[0].lineno in lines]
    if len(found) == 1:
        yield span.file, *found[0]


def _only_calls(facts: TraceIndex, saves: list[Save]) -> Iterator[tuple[str, ast.Call, str]]:
    """Yields the call of the module that owns the parameters, if it is a global name that one expression calls."""
    kept = {save.tensor for save in saves}
    bound = (b.name for b in facts.trace.end.bindings if b.tensor in kept and b.scope == "<module>")
    models = {name.partition(".")[0] for name in bound}
    found = [
        (file, node, node.func.id)
        for file, tree in facts.trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in models
    ]
    if len(found) == 1:
        yield found[0]


def _covers(node: ast.For | ast.While, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _sites_here(facts: TraceIndex, saves: list[Save], at: int) -> Iterator[int]:
    here = facts.scope(at)
    for save in saves:
        if save.call is not None and facts.scope(save.call.site) == here:
            yield save.call.site


def _way(facts: TraceIndex, save: Save, at: int) -> Iterator[int]:
    here = facts.scope(at)
    for site in () if save.call is None else facts.call_chain(save.call.site):
        if facts.scope(site) == here:
            yield site


def _layer_calls(facts: TraceIndex, saves: list[Save]) -> Iterator[tuple[str, ast.Call, str]]:
    """Yields the calls of the layers that kept the parameters, if each of them is one of PyTorch's layers."""
    found: dict[int, tuple[str, ast.Call, str]] = {}
    for save in saves:
        site = None if save.call is None else facts.trace.sites[save.call.site]
        node = None if site is None else facts.names.syntax.node(site.span)
        model = plain_name(node.func) if isinstance(node, ast.Call) else None
        if site is None or save.call is None or not isinstance(node, ast.Call) or model is None:
            return
        is_layer = bool(layer_class(facts, save.call)) or _is_made_by_torch(facts, site.span.file, model)
        if facts.names.syntax.is_direct(site, save.call.op) or not is_layer:
            return
        found[site.id] = site.span.file, node, model
    if len(found) <= _MAX_LAYERS:
        yield from found.values()


def _is_made_by_torch(facts: TraceIndex, file: str, model: str) -> bool:
    """Returns whether every assignment to a name in a file makes one of PyTorch's layers: `nn.Linear(...)`."""
    made = [
        node.value
        for node in ast.walk(facts.tree(file))
        if isinstance(node, ast.Assign) and any(plain_name(target) == model for target in node.targets)
    ]
    return bool(made) and all(isinstance(v, ast.Call) and ast.unparse(v.func).startswith("nn.") for v in made)


def _functional(facts: TraceIndex, file: str, node: ast.Call, model: str) -> tuple[Edit, Edit] | None:
    """Writes the call of a module as a `functional_call` with copies of its parameters.

    The arguments stay as they are: calls inside them can have edits of their own.
    """
    torch, text = module_name(facts, file, "torch"), facts.trace.sources[file]
    if torch is None or not node.args or node.keywords or node.lineno != node.end_lineno:
        return None
    if any(isinstance(each, ast.Starred | ast.GeneratorExp) for each in node.args):
        return None
    whole, func = span_of(node, text, file), span_of(node.func, text, file)
    copies = f"{{name: p.clone() for name, p in {model}.named_parameters()}}"
    begin = Span(file, whole.line, whole.column, func.end_line, func.end_column)
    inside = text_of(text, Span(file, func.end_line, func.end_column, whole.end_line, whole.end_column - 1)).rstrip()
    is_tuple = len(node.args) > 1 or inside.endswith(",")
    values = "" if is_tuple else ","
    last = Span(file, whole.end_line, whole.end_column - 1, whole.end_line, whole.end_column)
    return Edit(begin, f"{torch}.func.functional_call({model}, {copies}, "), Edit(last, f"{values}))")
