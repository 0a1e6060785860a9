"""A lesson line by line: after each statement, what it did and what every tensor is then. Imports no torch."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tensorlens.analysis.naming.names import Names, names_of
from tensorlens.analysis.states import states_after
from tensorlens.analysis.story.line_events import LineEvent
from tensorlens.analysis.story.story import Section, story
from tensorlens.lessons.course.skipped_statements import passed_by, raised_in
from tensorlens.records import claim_syntax
from tensorlens.records.claim import Claim
from tensorlens.records.model import Call, Event, GradMode, State, Trace
from tensorlens.records.source import tree_of

_NAME = re.compile(r"[^\W\d]\w*(\.\w+|\[[^]]*\])*")
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
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
    facts: tuple[LineEvent, ...]
    tensors: tuple[TensorState, ...]
    claims: tuple[Claim, ...]


def steps(trace: Trace, file: str) -> tuple[Step, ...]:
    """The steps of the script `file` in the order of its lines. A line that ran several times is one step, and shows
    what its last run left."""
    source = trace.sources.get(file, "")
    names = names_of(trace)
    told = _facts(story(trace, names), file, _called_from_several(trace, file, source))
    replay = _Replay(trace, names, file, source)
    reached = {claim.line for claim in trace.claims if claim.verdict != "not reached"}
    passed = passed_by(tree_of(source) or ast.Module([], []), raised_in(trace, file), {*told, *replay.lines, *reached})
    spans = [(first, last) for first, last in _statements(source) if first not in passed]
    checked = _by_step(source, trace.claims, [last for _, last in spans])
    found = []
    for first, last in spans:
        facts = tuple(fact for line in range(first, last + 1) for fact in told.get(line, ()))
        tensors = replay.tensors(replay.end_of(last), last)
        found.append(Step(first, last, facts, tensors, tuple(checked.get(last, ()))))
    return tuple(step for step in found if step.facts or step.claims or not _is_head(source, step))


def _by_step(source: str, checked: Iterable[Claim], ends: list[int]) -> dict[int, list[Claim]]:
    """The claims by the last line of the step after which they were checked: the last one of their statement that
    ran, since a claim on a `try` follows the whole of it."""
    places = claim_syntax.followed(source)
    found: dict[int, list[Claim]] = defaultdict(list)
    for claim in checked:
        last = places.get(claim.line, (0, 0))[1]
        found[max((end for end in ends if end <= last), default=0)].append(claim)
    return found


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


def _called_from_several(trace: Trace, file: str, source: str) -> set[str]:
    """The functions that ran more than once and may have been called from several lines: a trace knows the first."""
    ran = Counter(event.site for event in trace.events if isinstance(event, Call))
    again = {site.function for site in trace.sites if site.span.file == file and ran[site.id] > 1}
    tree = tree_of(source) or ast.Module([], [])
    used = Counter(node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
    return {function for function in again if "." in function or used[function] > 1}


def _facts(sections: tuple[Section, ...], file: str, unplaced: set[str]) -> dict[int, list[LineEvent]]:
    """What happened at each line of the module. What functions of the script did is shown where they were called,
    except for the functions in `unplaced`."""
    callers = {section.function: section.caller for section in sections if section.file == file}
    told: dict[int, list[LineEvent]] = {}
    for section in sections:
        if section.file != file or section.function in unplaced:
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
        self._bound = _where_bound(source)
        self.lines = [self._line(event, file) for event in trace.events]
        self._met: dict[int, int] = {}  # tensor -> the line of the module at which it was first met
        for event, line in zip(trace.events, self.lines, strict=True):
            for state in event.states if isinstance(event, Call) else ():
                self._met.setdefault(state.tensor, line)

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
        """How many of the events happened up to the last run of the lines up to `line`. That a block is left counts
        as none: it is an event of the line that the block begins with."""
        left = (isinstance(event, GradMode) and not event.entering for event in self._trace.events)
        numbered = enumerate(zip(self.lines, left, strict=True), 1)
        return max([0, *(number for number, (at, over) in numbered if 0 < at <= line and not over)])

    def tensors(self, end: int, line: int) -> tuple[TensorState, ...]:
        """The tensors that had a name by then, in the order in which they were made."""
        rows: dict[str, TensorState] = {}
        for state in states_after(self._trace, end):
            name = self._name(state.tensor, line)
            if name:
                rows[name] = self._row(name, state)
        return tuple(rows.values())

    def _name(self, tensor: int, line: int) -> str:
        """What the script called a tensor at `line`; "" where nothing had been given to it by then."""
        made = self._trace.tensors[tensor].created_by
        candidates = (
            *self._names.all_names(tensor),
            self._names.display_name(tensor, made),
            self._names.display_name(tensor),
        )
        plain = (name for name in candidates if _NAME.fullmatch(name) and not name.endswith(".grad"))
        return next((name for name in plain if self._is_given(name, tensor, line)), "")

    def _is_given(self, name: str, tensor: int, line: int) -> bool:
        """Whether the tensor may have the name at `line`. One that is given again and again is given to the tensor on
        a line that runs after the tensor is met: in a loop that may be any."""
        places = self._bound.get(name.partition(".")[0].partition("[")[0], [])
        before = [place for place in places if place[0] <= line]
        if len(places) < 2 or name != name.partition(".")[0].partition("[")[0]:
            return bool(before)
        return any(repeated or last >= self._met[tensor] for _, last, repeated in before)

    def _row(self, name: str, state: State) -> TensorState:
        tensor = self._trace.tensors[state.tensor]
        storage = state.storage if state.storage is not None else tensor.storage
        none = "None" if state.is_leaf or state.retains_grad else "not kept"
        return TensorState(
            name=name,
            storage="none" if storage is None else self._names.storage_mark(storage),
            requires_grad="yes" if state.requires_grad else "no",
            grad_fn=state.grad_fn or ("leaf" if state.is_leaf else ""),
            version="none" if state.version is None else str(state.version),
            grad=none if state.grad is None else state.grad,
        )


def _where_bound(source: str) -> dict[str, list[tuple[int, int, bool]]]:
    """Where each name of the module is given a value: the first and last line of the statement, and whether a loop
    runs it."""
    found: dict[str, list[tuple[int, int, bool]]] = defaultdict(list)
    tree = tree_of(source)
    waiting: list[tuple[ast.AST, tuple[int, int], bool]] = [(tree, (0, 0), False)] if tree is not None else []
    while waiting:
        node, lines, repeated = waiting.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found[node.id].append((*lines, repeated))
        if isinstance(node, ast.stmt):
            compound = bool(getattr(node, "body", None))
            lines = node.lineno, (node.lineno if compound else node.end_lineno) or node.lineno
            repeated = repeated or isinstance(node, ast.For | ast.AsyncFor | ast.While)
        if not isinstance(node, _SCOPES):  # the names of a function are its own
            waiting += [(child, lines, repeated) for child in ast.iter_child_nodes(node)]
    return found
