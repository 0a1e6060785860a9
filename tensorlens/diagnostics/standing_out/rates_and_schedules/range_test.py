"""Names a range test of the learning rate whose steps the training goes on from."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from math import isclose

from tensorlens.analysis.naming.name_words import words_of
from tensorlens.analysis.naming.syntax import called_name, last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.rates_and_schedules.rate_phases import rate_phases
from tensorlens.analysis.training.run_summary import is_complete
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.report import StandingOut
from tensorlens.records.training import OptimizerGroup

_MIN_RATES = 6  # that grow in a row; each may be a mean of several
_MIN_STEPS = 10  # the same, of single steps
_MIN_GROWTH = 1_000
_MIN_FALL = 10
_HIGH = 1.0  # rate: a training may warm up to less
_TEST_WORDS = frozenset("find finder range sweep".split())  # of a function that runs the steps
_RATE_WORDS = frozenset("lr lrs rate rates".split())
_UNSEEN = frozenset("numpy from_numpy asarray array copyto memoryview data_ptr storage untyped_storage dlpack".split())
_NEAR = 0.02  # relative difference between two factors
_MIXED = 1  # a mean of rates before and after the test


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds it if the rate grows by one factor again and again, and falls at once, and nothing but steps writes to the
    parameters after the first step."""
    facts = training.facts
    if not is_complete(facts.trace) or _may_be_unseen(facts):
        return
    for group in training.groups:
        rates = _grown(group)
        later = _steps_after(training, group) if rates else None
        if not rates or later is None or any(training.writes(number) for number in group.parameters):
            continue
        chain = _chain(training, group)
        is_test = _is_named_test(facts, chain)
        if not is_test and rates[-1] < _HIGH:
            continue
        yield stands_out(
            f"steps of `{group.name}` raise its learning rate from about {rates[0]:.2g} to {rates[-1]:.2g} or more by "
            f"one factor again and again{', as a test of its range' if is_test else ''}, and the training goes on from "
            "the parameters that they leave: no line sets these back",
            facts.label("optimizer_made_here", group.site, "made here"),
            facts.label("optimizer_made_here", later.site, "goes on with the parameters")
            if later.optimizer != group.optimizer
            else None,
            *(facts.label("called_here", each, "steps here") for each in chain[:2]),
        )


def _may_be_unseen(facts: TraceIndex) -> bool:
    """Returns whether a line may set parameters by an array that shares their memory, or the program has a warm-up."""
    nodes = [node for _, tree in facts.trees() for node in ast.walk(tree)]
    names = {last_name(node) for node in nodes if isinstance(node, ast.Name | ast.Attribute)}
    names |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    is_shared = any(called_name(node) in _UNSEEN for node in nodes)
    return is_shared or any(word.startswith("warm") for name in names for word in words_of(name))


def _chain(training: MeasuredTraining, group: OptimizerGroup) -> list[int]:
    site = training.training.steps[group.turns[0] - 1].site
    return [] if site is None else list(training.facts.call_chain(site))


def _is_named_test(facts: TraceIndex, chain: list[int]) -> bool:
    """Returns whether a function that runs the steps is named as a test of the rate."""
    words = [set(words_of(facts.trace.sites[each].function)) for each in chain]
    return any(
        (each & _TEST_WORDS and each & _RATE_WORDS) or {"range", "test"} <= each or {"lr", "test"} <= each
        for each in words
    )


def _grown(group: OptimizerGroup) -> list[float]:
    """Returns the first rates of a group, as long as they grow by one factor."""
    count, first, last, later = group.grown
    if count >= _MIN_STEPS and 0 < first * _MIN_GROWTH <= last and not later * _MIN_FALL > last:
        return [first, last]
    rates = [*group.course]
    if len(rates) < _MIN_RATES or not all(rate > 0 for rate in rates):
        return []
    factor = rates[1] / rates[0]
    end = next((k for k in range(1, len(rates)) if not isclose(rates[k] / rates[k - 1], factor, rel_tol=_NEAR)), None)
    found = rates[:end]
    is_test = factor > 1 and len(found) >= _MIN_RATES and found[-1] / found[0] >= _MIN_GROWTH
    after = [] if end is None else rates[end + _MIXED :]
    return found if is_test and (end is None or (after and max(after) * _MIN_FALL <= found[-1])) else []


def _steps_after(training: MeasuredTraining, group: OptimizerGroup) -> OptimizerGroup | None:
    """Returns the group that steps the parameters with a lower rate after the test: itself, if other lines run its
    steps or set its rate then, or that of a later optimizer of the same kind, after rates that no training has."""
    if group.rates[1] > group.rates[0] and group.course[-1] * _MIN_FALL <= group.rates[1]:
        return group if _is_elsewhere(training, group) else None
    is_high = group.rates[1] >= _HIGH or _is_named_test(training.facts, _chain(training, group))
    for other in training.groups if is_high else ():
        is_later = other.turns[0] > group.turns[1] and other.name == group.name
        if is_later and set(other.parameters) & set(group.parameters) and other.rates[1] * _MIN_FALL <= group.rates[1]:
            return other
    return None


def _is_elsewhere(training: MeasuredTraining, group: OptimizerGroup) -> bool:
    """Returns whether other lines run the last step than the first one, or set the rate before it in another loop or
    function: the lines of a warm-up and of a decay may be in one loop."""
    steps = training.training.steps
    if group.turns[1] > len(steps):
        return False
    is_other = steps[group.turns[0] - 1].site != steps[group.turns[1] - 1].site
    return is_other or len(rate_phases(training.facts)) > 1
