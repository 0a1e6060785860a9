"""Names groups without weight decay that hold no parameters, since no name has the words that the program looks for."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from tensorlens.analysis.naming.syntax import called_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.report import Label, StandingOut

_NORMS = frozenset("layer_norm batch_norm group_norm instance_norm rms_norm".split())
_SCALES = frozenset("rsqrt std var std_mean var_mean norm vector_norm normalize".split())
_COLLECTING = frozenset("append add update extend insert".split())
_ASKING = frozenset(("named_parameters", "modules", "named_modules"))
_OF_NORMS = re.compile(r"norm|gain|scale|gamma|(^|[^a-z])(ln|bn|gn)([^a-z]|$)", re.IGNORECASE)
_MOST_USES = 8
_SEARCHES = frozenset(("startswith", "endswith", "find", "search", "match", "fullmatch", "fnmatch"))


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds these groups, if another one of the optimizer decays vectors, as the weights of norms and biases are."""
    facts = training.facts
    for empty in training.groups:
        if empty.parameters or not empty.steps or empty.is_shared or empty.weight_decay:
            continue
        others = [each for each in training.groups if each.optimizer == empty.optimizer and each.parameters]
        vectors = [number for each in others for number in each.parameters if len(facts.tensor(number).shape) < 2]
        searches, words = list(_searches(facts)) if _is_for_norms(facts) else [], list(_words(facts))
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


def _is_for_norms(facts: TraceIndex) -> bool:
    """Returns whether a word or a type that the program looks for speaks of norms: it may look for others only."""
    for file, tests in _conditions(facts):
        names = {each.id for test in tests for each in ast.walk(test) if isinstance(each, ast.Name)}
        parts = [
            each
            for each in ast.walk(facts.tree(file))
            if (isinstance(each, ast.FunctionDef) and each.name in names)
            or (isinstance(each, ast.Assign) and names & _stored(each))
        ]
        inner = {each.id for part in parts for each in ast.walk(part) if isinstance(each, ast.Name)} - names
        parts += [each for each in ast.walk(facts.tree(file)) if isinstance(each, ast.Assign) and inner & _stored(each)]
        for node in (node for part in (*tests, *parts) for node in ast.walk(part)):
            text = (
                node.value if isinstance(node, ast.Constant) else node.attr if isinstance(node, ast.Attribute) else ""
            )
            text = node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) else text
            if isinstance(text, str) and _OF_NORMS.search(text):
                return True
    return False


def _stored(node: ast.Assign) -> set[str]:
    return {target.id for target in node.targets if isinstance(target, ast.Name)}


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
    is_of_norm = is_of_norm or _is_after_scale(facts, number)
    return is_of_norm or any(each.lower() in low and each not in row.name for each in words)


def _is_after_scale(facts: TraceIndex, number: int) -> bool:
    """Returns whether a vector that began as ones multiplies what a function has divided by its own size."""
    made = facts.creator(number)
    source = facts.creator(made.inputs[0].tensor) if made is not None and made.inputs else made
    if source is None or op_name(source) not in ("ones", "ones_like", "full", "new_ones"):
        return False
    uses = [call for call in facts.calls if any(a.tensor == number for a in call.inputs)][:_MOST_USES]
    functions = {facts.trace.sites[call.site].function for call in uses if op_name(call) in ("mul", "rmul", "addcmul")}
    scaling = (
        call
        for call in facts.calls
        if op_name(call) in _SCALES and facts.trace.sites[call.site].function in functions - {"<module>"}
    )
    return any(not facts.tensor(a.tensor).type.endswith("Parameter") for call in scaling for a in call.inputs[:1])


def _searches(facts: TraceIndex) -> Iterator[Label]:
    """Labels the places where the program looks for words in the names of parameters, or for types of modules."""
    for file, tests in _conditions(facts):
        yield Label("observed_here", facts.span_of(tests[0], file), "looks for these in the model")


def _words(facts: TraceIndex) -> Iterator[str]:
    """Yields the words that the program looks for, those in lists with a name too."""
    for file, tests in _conditions(facts):
        names = {each.id for test in tests for each in ast.walk(test) if isinstance(each, ast.Name)}
        lists = [each.value for each in ast.walk(facts.tree(file)) if isinstance(each, ast.Assign)
                 and any(isinstance(target, ast.Name) and target.id in names for target in each.targets)]  # fmt: skip
        for node in (node for part in (*tests, *lists) for node in ast.walk(part)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def _conditions(facts: TraceIndex) -> Iterator[tuple[str, list[ast.AST]]]:
    """Yields what loops over named parameters or modules look for, by a helper function as well."""
    trees = [(file, tree) for file, tree in facts.trees() if _goes_through(tree)]
    nodes = [node for _, tree in trees for node in ast.walk(tree)]
    looking = {node.name for node in nodes if isinstance(node, ast.FunctionDef) and any(map(_looks, ast.walk(node)))}
    given = {
        target.id
        for node in nodes
        if isinstance(node, ast.Assign) and _goes_through(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    called = {called_name(node) for node in calls if any(_goes_through(each) for each in node.args)}
    taking = [node for node in nodes if isinstance(node, ast.FunctionDef) and node.name in called]
    given |= {each.arg for node in taking for each in node.args.args}
    rest: Sequence[ast.AST]
    for file, tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.DictComp | ast.SetComp):
                spans, rest = [each.iter for each in node.generators], [node]
            elif isinstance(node, ast.For):
                spans, rest = [node.iter], node.body
            else:
                continue
            names = {each.id for span in spans for each in ast.walk(span) if isinstance(each, ast.Name)}
            is_of_model = any(_goes_through(each) for each in spans) or names & given
            parts = (part for each in rest for part in ast.walk(each))
            found = [part for part in parts if _looks(part) or called_name(part) in looking]
            if is_of_model and found and (isinstance(node, ast.expr) or any(map(_collects, ast.walk(node)))):
                yield file, found


def _collects(node: ast.AST) -> bool:
    """Returns whether a part of the source adds something to a collection."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr in _COLLECTING
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AugAssign) else []
    return isinstance(node, ast.Yield) or any(isinstance(each, ast.Subscript) for each in targets)


def _goes_through(node: ast.AST) -> bool:
    """Returns whether code asks a model for its parameters with their names, or for its modules."""
    return any(isinstance(each, ast.Attribute) and each.attr in _ASKING for each in ast.walk(node))


def _looks(node: ast.AST) -> bool:
    """Returns whether a part of the source looks for a word in a name, or for the type of a module."""
    if isinstance(node, ast.Compare):
        return any(isinstance(each, ast.In | ast.NotIn) for each in node.ops)
    is_search = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SEARCHES
    return is_search or called_name(node) in ("isinstance", "fnmatch")
