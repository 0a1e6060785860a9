"""Splits a lesson into steps: each statement with its events and the tensors after it. Imports no torch."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tensorlens.analysis.naming.bindings import root_of
from tensorlens.analysis.naming.names import Names, names_of
from tensorlens.analysis.states import states_after
from tensorlens.analysis.story.line_events import LineEvent
from tensorlens.analysis.story.story import Section, story
from tensorlens.lessons.course.skipped_statements import raised_in, skipped_lines
from tensorlens.records import claim_syntax
from tensorlens.records.claim import Claim
from tensorlens.records.model import Call, Event, GradMode, State, Trace
from tensorlens.records.source import tree_of

_NAME = re.compile(r"[^\W\d]\w*(\.\w+|\[[^]]*\])*")
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_NO_STEPS = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True, slots=True)
class TensorState:
    """A named tensor after a step, as texts for a table."""

    name: str
    storage: str
    requires_grad: str
    grad_fn: str
    version: str
    grad: str


@dataclass(frozen=True, slots=True)
class Step:
    """A statement or the head of a block: its lines, events and claims, and the tensors after it."""

    first: int
    last: int
    facts: tuple[LineEvent, ...]
    tensors: tuple[TensorState, ...]
    claims: tuple[Claim, ...]


def steps(trace: Trace, file: str) -> tuple[Step, ...]:
    """Returns the steps of the script `file` in the order of its lines. A line that ran several times is one step, with
    the tensors after its last run."""
    source = trace.sources.get(file, "")
    names = names_of(trace)
    events = _events_by_line(story(trace, names), file, _called_from_several(trace, file, source))
    replay = _Replay(trace, names, file, source)
    reached = {claim.line for claim in trace.claims if claim.verdict != "not reached"}
    ran = {*events, *replay.lines, *reached}
    skipped = skipped_lines(tree_of(source) or ast.Module([], []), raised_in(trace, file), ran)
    spans = [(first, last) for first, last in _statements(source) if first not in skipped]
    claims = _claims_by_step(source, trace.claims, [last for _, last in spans])
    all_steps = []
    for first, last in spans:
        facts = tuple(fact for line in range(first, last + 1) for fact in events.get(line, ()))
        tensors = replay.tensors(replay.end_of(last), last)
        all_steps.append(Step(first, last, facts, tensors, tuple(claims.get(last, ()))))
    return tuple(step for step in all_steps if step.facts or step.claims or not _is_head(source, step))


def _claims_by_step(source: str, claims: Iterable[Claim], ends: list[int]) -> dict[int, list[Claim]]:
    """Groups the claims by the last line of their step. A claim below a `try` belongs to the last step of the `try`
    that ran."""
    places = claim_syntax.followed(source)
    by_step: dict[int, list[Claim]] = defaultdict(list)
    for claim in claims:
        last = places.get(claim.line, (0, 0))[1]
        by_step[max((end for end in ends if end <= last), default=0)].append(claim)
    return by_step


def _statements(source: str) -> Iterator[tuple[int, int]]:
    """Yields the first and last line of each simple statement of the module, and of the head of each block."""
    tree = tree_of(source)
    body = tree.body if tree is not None else []
    yield from _of_block(body[1:] if tree is not None and ast.get_docstring(tree) is not None else body)


def _of_block(body: list[ast.stmt]) -> Iterator[tuple[int, int]]:
    for statement in body:
        if isinstance(statement, _NO_STEPS):
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
    """Returns whether a step is only the head of a block, such as `for ...:`; the next step shows its lines."""
    tree = tree_of(source)
    blocks = (node for node in ast.walk(tree) if getattr(node, "body", None)) if tree is not None else iter(())
    return any(getattr(node, "lineno", 0) == step.first for node in blocks)


def _called_from_several(trace: Trace, file: str, source: str) -> set[str]:
    """Returns the functions that several lines may have called: a trace knows only the first caller of each."""
    ran = Counter(event.site for event in trace.events if isinstance(event, Call))
    repeated = {site.function for site in trace.sites if site.span.file == file and ran[site.id] > 1}
    tree = tree_of(source) or ast.Module([], [])
    used = Counter(node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
    return {function for function in repeated if "." in function or used[function] > 1}


def _events_by_line(sections: tuple[Section, ...], file: str, unplaced: set[str]) -> dict[int, list[LineEvent]]:
    """Groups the events by line of the module. An event inside a function of the script belongs to the line that called
    the function; those inside the functions in `unplaced` are left out."""
    callers = {section.function: section.caller for section in sections if section.file == file}
    by_line: dict[int, list[LineEvent]] = {}
    for section in sections:
        if section.file != file or section.function in unplaced:
            continue
        called_at = _module_line(section.function, callers, file)
        for row in section.rows:
            line = row.line if section.function == "<module>" else called_at
            facts = [
                fact if line == row.line else replace(fact, text=f"{fact.text} (line {row.line})") for fact in row.facts
            ]
            by_line.setdefault(line, []).extend(facts)
    return by_line


def _module_line(function: str, callers: dict[str, tuple[str, int] | None], file: str) -> int:
    """Returns the line of the module that called a function; 0 if it is not known."""
    caller = callers.get(function)
    return caller[1] if caller is not None and caller[0] == file else 0


class _Replay:
    """Looks up the tensors of a run, and their states, after any of its events."""

    def __init__(self, trace: Trace, names: Names, file: str, source: str) -> None:
        self._trace = trace
        self._names = names
        self._bindings = _bindings(source)
        self.lines = [self._line(event, file) for event in trace.events]
        self._first_line: dict[int, int] = {}  # tensor -> the line of the module that first used it
        for event, line in zip(trace.events, self.lines, strict=True):
            for state in event.states if isinstance(event, Call) else ():
                self._first_line.setdefault(state.tensor, line)

    def _line(self, event: Event, file: str) -> int:
        """Returns the line of the module during which an event happened; 0 if it is not known."""
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
        """Returns how many events there were when the lines up to `line` ran for the last time.

        The event of leaving a `with` block has the line of the `with`, but comes after the block, so it is skipped.
        """
        leaves_block = (isinstance(event, GradMode) and not event.entering for event in self._trace.events)
        numbered = enumerate(zip(self.lines, leaves_block, strict=True), 1)
        return max([0, *(number for number, (at, leaves) in numbered if 0 < at <= line and not leaves)])

    def tensors(self, end: int, line: int) -> tuple[TensorState, ...]:
        """Returns the tensors that had a name after `end` events at `line`, in the order in which they were made."""
        rows: dict[str, TensorState] = {}
        for state in states_after(self._trace, end):
            name = self._name(state.tensor, line)
            if name:
                rows[name] = self._row(name, state)
        return tuple(rows.values())

    def _name(self, tensor: int, line: int) -> str:
        """Returns the script's name for a tensor at `line`; "" if it had none yet."""
        made = self._trace.tensors[tensor].created_by
        candidates = (
            *self._names.all_names(tensor),
            self._names.display_name(tensor, made),
            self._names.display_name(tensor),
        )
        plain = (name for name in candidates if _NAME.fullmatch(name) and not name.endswith(".grad"))
        return next((name for name in plain if self._may_be_bound(name, tensor, line)), "")

    def _may_be_bound(self, name: str, tensor: int, line: int) -> bool:
        """Returns whether the name may be bound to the tensor at `line`.

        A name with several bindings got this tensor in a binding that ends after the tensor's first use; a binding in
        a loop may always be the one.
        """
        bindings = self._bindings.get(root_of(name), [])
        before = [binding for binding in bindings if binding[0] <= line]
        if len(bindings) < 2 or name != root_of(name):
            return bool(before)
        return any(repeated or last >= self._first_line[tensor] for _, last, repeated in before)

    def _row(self, name: str, state: State) -> TensorState:
        tensor = self._trace.tensors[state.tensor]
        storage = state.storage if state.storage is not None else tensor.storage
        none = "None" if state.is_leaf or state.retains_grad else "not a leaf"
        return TensorState(
            name=name,
            storage="none" if storage is None else self._names.storage_mark(storage),
            requires_grad="yes" if state.requires_grad else "no",
            grad_fn=state.grad_fn or ("leaf" if state.is_leaf else ""),
            version="none" if state.version is None else str(state.version),
            grad=none if state.grad is None else state.grad,
        )


def _bindings(source: str) -> dict[str, list[tuple[int, int, bool]]]:
    """Returns name -> the statements that bind it: first line, last line, whether a loop repeats them."""
    bindings: dict[str, list[tuple[int, int, bool]]] = defaultdict(list)
    tree = tree_of(source)
    waiting: list[tuple[ast.AST, tuple[int, int], bool]] = [(tree, (0, 0), False)] if tree is not None else []
    while waiting:
        node, lines, repeated = waiting.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bindings[node.id].append((*lines, repeated))
        if isinstance(node, ast.stmt):
            compound = bool(getattr(node, "body", None))
            lines = node.lineno, (node.lineno if compound else node.end_lineno) or node.lineno
            repeated = repeated or isinstance(node, ast.For | ast.AsyncFor | ast.While)
        if not isinstance(node, _SCOPES):  # names inside a function are local to it
            waiting += [(child, lines, repeated) for child in ast.iter_child_nodes(node)]
    return bindings
