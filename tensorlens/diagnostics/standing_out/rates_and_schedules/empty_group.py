"""Names groups without weight decay that hold no parameters, since no name has the words that the program looks for."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.report import Label, StandingOut

_NORMS = frozenset("layer_norm batch_norm group_norm instance_norm rms_norm".split())
_SEARCHES = frozenset(("startswith", "endswith", "find", "search", "match", "fullmatch", "fnmatch"))


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds these groups, if another one of the optimizer decays vectors, as the weights of norms and biases are."""
    facts = training.facts
    for empty in training.groups:
        if empty.parameters or not empty.steps or empty.is_shared or empty.weight_decay:
            continue
        others = [each for each in training.groups if each.optimizer == empty.optimizer and each.parameters]
        vectors = [number for each in others for number in each.parameters if len(facts.tensor(number).shape) < 2]
        searches, words = list(_searches(facts)), list(_words(facts))
        gains = [number for number in vectors if _is_gain(training, number, words)]
        is_whole = len(vectors) == sum(len(each.parameters) for each in others)
        if not searches or not gains or is_whole or not all(each.weight_decay > 0 for each in others):
            continue
        decay = max(each.weight_decay for each in others)
        held = "1 parameter" if len(vectors) == 1 else f"{len(vectors)} parameters"
        yield stands_out(
            f"the group of `{empty.name}` with a weight decay of 0 holds no parameters: {held} of at most one "
            f"dimension {'has' if len(vectors) == 1 else 'have'} one of {decay:g} in another group",
            facts.label("optimizer_made_here", empty.site, "made here"),
            *searches[:3],
        )


def _is_gain(training: MeasuredTraining, number: int, words: list[str]) -> bool:
    """Returns whether a vector is of a norm, or has a searched word but for its case; biases may be meant to decay."""
    facts, row = training.facts, training.row(number)
    if row is None or "bias" in row.name:
        return False
    made, low = facts.creator(number), row.name.lower()
    site = None if made is None else facts.trace.sites[made.site]
    makers = () if site is None else (site.through or site.function).split(".")[:-1]
    is_of_norm = any("norm" in each.lower() for each in makers)
    is_of_norm |= any(op_name(call) in _NORMS for call in facts.calls if any(a.tensor == number for a in call.inputs))
    return is_of_norm or any(each.lower() in low and each not in row.name for each in words)


def _searches(facts: TraceIndex) -> Iterator[Label]:
    """Labels the places where the program looks for words in the names of parameters."""
    for file, node, _ in _conditions(facts):
        yield Label("observed_here", facts.span_of(node, file), "looks for words in names")


def _words(facts: TraceIndex) -> Iterator[str]:
    """Yields the words that the program looks for, those in lists with a name too."""
    for file, _, tests in _conditions(facts):
        names = {each.id for test in tests for each in ast.walk(test) if isinstance(each, ast.Name)}
        lists = [each.value for each in ast.walk(facts.tree(file)) if isinstance(each, ast.Assign)
                 and any(isinstance(target, ast.Name) and target.id in names for target in each.targets)]  # fmt: skip
        for node in (node for part in (*tests, *lists) for node in ast.walk(part)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def _conditions(facts: TraceIndex) -> Iterator[tuple[str, ast.AST, list[ast.expr]]]:
    """Yields the loops over named parameters with the conditions in them, if one looks for a word."""
    for file, tree in facts.trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.DictComp | ast.SetComp):
                spans, rest = [each.iter for each in node.generators], [each for g in node.generators for each in g.ifs]
            elif isinstance(node, ast.For):
                spans, rest = [node.iter], [each.test for each in ast.walk(node) if isinstance(each, ast.If)]
            else:
                continue
            is_named = any("named_parameters" in ast.unparse(each) for each in spans)
            if is_named and any(_looks_for_words(each) for part in rest for each in ast.walk(part)):
                yield file, node, rest


def _looks_for_words(node: ast.AST) -> bool:
    if isinstance(node, ast.Compare):
        return any(isinstance(each, ast.In | ast.NotIn) for each in node.ops)
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SEARCHES
