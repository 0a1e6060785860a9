"""A lesson line by line: after each statement, what it did and what every tensor is then. Imports no torch."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tensorlens import claims
from tensorlens.analysis.names import Names, names_of
from tensorlens.analysis.phrases import Fact
from tensorlens.analysis.story import Section, story
from tensorlens.model import Backward, Call, Event, State, Trace
from tensorlens.source import tree_of
from tensorlens.verdicts import Claim

_NAME = re.compile(r"[^\W\d]\w*(\.\w+|\[[^]]*\])*")
_PASSED = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True, slots=True)
class TensorState:
    """A named tensor after a step, in words."""

    name: str
    storage: str
    requires_grad: str
    grad_fn: str
    version: str
    grad: str


@dataclass(frozen=True, slots=True)
class Step:
    """A statement, or the head of a block: its lines, what happened there, the tensors after it, the claims on it."""

    first: int
    last: int
    facts: tuple[Fact, ...]
    tensors: tuple[TensorState, ...]
    claims: tuple[Claim, ...]


def steps(trace: Trace, file: str) -> tuple[Step, ...]:
    """The steps of the script `file` in the order of its lines. A line that ran several times is one step, and shows
    what its last run left."""
    source = trace.sources.get(file, "")
    names = names_of(trace)
    spans = list(_statements(source))
    told = _facts(story(trace, names), file)
    replay = _Replay(trace, names, file, source)
    ends = [replay.end_of(last) for _, last in spans]
    places = claims.followed(source)
    found = []
    for (first, last), end in zip(spans, ends, strict=True):
        facts = tuple(fact for line in range(first, last + 1) for fact in told.get(line, ()))
        checked = tuple(claim for claim in trace.claims if places.get(claim.line, (0, 0))[1] == last)
        found.append(Step(first, last, facts, replay.tensors(end, last), checked))
    return tuple(step for step in found if step.facts or step.claims or not _is_head(source, step))


def _statements(source: str) -> Iterator[tuple[int, int]]:
    """The lines of each statement of the module that is run for itself, and of the head of each block."""
    tree = tree_of(source)
    body = tree.body if tree is not None else []
    yield from _of_block(body[1:] if tree is not None and ast.get_docstring(tree) is not None else body)


def _of_block(body: list[ast.stmt]) -> Iterator[tuple[int, int]]:
    for statement in body:
        if isinstance(statement, _PASSED):
            continue
        inner = getattr(statement, "body", None)
        if not inner:
            yield statement.lineno, statement.end_lineno or statement.lineno
            continue
        yield statement.lineno, inner[0].lineno - 1 if inner[0].lineno > statement.lineno else statement.lineno
        yield from _of_block(inner)
        for part in [*getattr(statement, "handlers", []), *getattr(statement, "cases", [])]:
            yield from _of_block(part.body)
        for name in ("orelse", "finalbody"):
            yield from _of_block(getattr(statement, name, []))


def _is_head(source: str, step: Step) -> bool:
    """Whether a step is no more than `for ...:` or `try:`: its lines are shown with the next step."""
    tree = tree_of(source)
    blocks = (node for node in ast.walk(tree) if getattr(node, "body", None)) if tree is not None else iter(())
    return any(getattr(node, "lineno", 0) == step.first for node in blocks)


def _facts(sections: tuple[Section, ...], file: str) -> dict[int, list[Fact]]:
    """What happened at each line of the module. What functions of the script did is told where they were called."""
    callers = {section.function: section.caller for section in sections if section.file == file}
    told: dict[int, list[Fact]] = {}
    for section in sections:
        if section.file != file:
            continue
        at = _module_line(section.function, callers, file)
        for row in section.rows:
            line = row.line if section.function == "<module>" else at
            facts = [
                fact if line == row.line else replace(fact, text=f"{fact.text} (line {row.line})") for fact in row.facts
            ]
            told.setdefault(line, []).extend(facts)
    return told


def _module_line(function: str, callers: dict[str, tuple[str, int] | None], file: str) -> int:
    """The line of the module from which a function was reached; 0 where that is not known."""
    caller = callers.get(function)
    return caller[1] if caller is not None and caller[0] == file else 0


class _Replay:
    """The tensors of a run as they were after any of its events."""

    def __init__(self, trace: Trace, names: Names, file: str, source: str) -> None:
        self._trace = trace
        self._names = names
        self._bound = _first_bound(source)
        self._lines = [self._line(event, file) for event in trace.events]

    def _line(self, event: Event, file: str) -> int:
        """The line of the module during which an event happened; 0 where it is not known."""
        site = event.site
        for _ in range(50):
            if site is None:
                return 0
            place = self._trace.sites[site]
            if place.span.file == file and place.function == "<module>":
                return place.span.line
            site = place.caller
        return 0

    def end_of(self, line: int) -> int:
        """How many of the events happened up to the last run of the lines up to `line`."""
        return max([0, *(number for number, at in enumerate(self._lines, 1) if 0 < at <= line)])

    def tensors(self, end: int, line: int) -> tuple[TensorState, ...]:
        """The tensors that had a name by then, in the order in which they came to be."""
        rows: dict[str, TensorState] = {}
        for state in _states(self._trace, end):
            name = self._name(state.tensor, line)
            if name:
                rows[name] = self._row(name, state)
        return tuple(rows.values())

    def _name(self, tensor: int, line: int) -> str:
        """What the script called a tensor at `line`; "" where nothing had been given to it by then."""
        made = self._trace.tensors[tensor].created_by
        candidates = (*self._names.all(tensor), self._names.of(tensor, made), self._names.of(tensor))
        roots = ((name, name.partition(".")[0].partition("[")[0]) for name in candidates if _NAME.fullmatch(name))
        return next((name for name, root in roots if self._bound.get(root, line + 1) <= line), "")

    def _row(self, name: str, state: State) -> TensorState:
        tensor = self._trace.tensors[state.tensor]
        storage = state.storage if state.storage is not None else tensor.storage
        none = "None" if state.is_leaf or state.retains_grad else "not kept"
        return TensorState(
            name=name,
            storage="none" if storage is None else self._names.number(storage),
            requires_grad="yes" if state.requires_grad else "no",
            grad_fn=state.grad_fn or ("leaf" if state.is_leaf else ""),
            version="none" if state.version is None else str(state.version),
            grad=none if state.grad is None else state.grad,
        )


def _first_bound(source: str) -> dict[str, int]:
    """The line at which each name of the module is first given a value."""
    tree = tree_of(source)
    first: dict[str, int] = {}
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            first[node.id] = min(node.lineno, first.get(node.id, node.lineno))
    return first


def _states(trace: Trace, end: int) -> Iterator[State]:
    """The last state of each tensor met in the first `end` events; gradients as backward passes and assignments to
    `.grad` left them, versions as the last of the tensors had it that share a counter."""
    states: dict[int, State] = {}
    versions: dict[int, int] = {}  # by counter
    for event in trace.events[:end]:
        if isinstance(event, Call):
            for state in event.states:
                old = states.get(state.tensor)
                states[state.tensor] = replace(state, grad=state.grad or (old.grad if old else None))
                if state.version is not None:
                    versions[trace.tensors[state.tensor].counter] = state.version
            versions.update({trace.tensors[write.tensor].counter: write.after for write in event.writes})
            if event.op.endswith(".grad.__set__") and event.inputs and event.inputs[0].tensor in states:
                tensor = event.inputs[0].tensor
                states[tensor] = replace(states[tensor], grad=None if len(event.inputs) < 2 else "set")
        elif isinstance(event, Backward):
            for gradient in event.gradients:
                if gradient.tensor in states:
                    states[gradient.tensor] = replace(states[gradient.tensor], grad=gradient.after)
    for state in states.values():
        version = versions.get(trace.tensors[state.tensor].counter)
        yield state if state.version is None or version is None else replace(state, version=version)
