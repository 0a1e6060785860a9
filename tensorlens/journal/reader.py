"""From the rows of a journal (`tensorlens.journal.rows`) to a `Trace`."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import replace
from itertools import count, repeat
from typing import Any

from tensorlens.journal.retention import WINDOW, Retention
from tensorlens.journal.rows import BROKEN, CALL, NONE, rows_of, values_text
from tensorlens.journal.trace_builder import MODES, CallTemplate, Info, TraceBuilder, accesses, optional, state_of
from tensorlens.records import callbacks, claim, failure_context, model, observations, reference
from tensorlens.records.error_messages import classify
from tensorlens.records.model import Gradient, Write
from tensorlens.records.source import column_of, line_at


def _shown(values: Any) -> str | None:
    return None if values is None else values_text(values)


class Reader:
    """Builds a `Trace` from rows. Feed it with `read`, ask for `trace` at any time: a partial run is a trace too."""

    def __init__(self, script: model.Script, window: int = WINDOW) -> None:
        self.script = script
        self._versions = model.Versions("", "", "")
        self._sources: dict[str, str] = {}
        self._sites: list[model.Site] = []
        self._nbytes: dict[int, int] = {}  # of storages
        self._infos: dict[int, Info] = {}  # of tensors that no short row made
        self._plans: dict[int, CallTemplate] = {}
        self._lengths: dict[int, int] = {}  # of the short rows of a plan
        self._runs: Counter[int] = Counter()  # of a plan
        self._window = Retention(window, self._infos)
        self._within = ""
        self._is_step_counted = False
        self._gaps: Counter[tuple[str, int | None]] = Counter()
        self._count = 0
        self._started: dict[int, int] = {}
        self._regions: dict[int, int] = {}
        self._failures: list[model.Failure] = []
        self._claims: list[claim.Claim] = []
        self._assignments: list[failure_context.Assignment] = []
        self._totals: Counter[tuple[int, str]] = Counter()
        self._end = model.End()
        self.noticed: dict[str, list[Any]] = {name: [] for name in observations.KINDS}
        self._callbacks: dict[str, Any] = {"functions": [], "registrations": [], "runs": deque(maxlen=window)}
        self.passes: list[reference.Pass] = []
        self.unchecked: dict[str, str] = {}  # what of the comparison with a second run went wrong -> why
        self.reference: reference.Reference | None = None  # what comparing them came to, for the trace
        self.finished = False
        self._is_broken = False

    def read(self, batches: Iterable[list[Any]]) -> None:
        """Take in batches of rows, each whole; after a row that can't be read, none."""
        for batch in batches:
            try:
                if not self._is_broken:
                    self._take_in(batch)
            except Exception:  # the program has written over its journal: what came before is good
                self.break_off(BROKEN)

    def break_off(self, reason: str) -> None:
        """There is no more to read, although the run went on."""
        if not self._is_broken:
            self._is_broken = True
            self._read_gap(reason, NONE)

    def note_gap(self, reason: str) -> None:
        """Say that something of the run is not known."""
        self._read_gap(reason, NONE)

    def _take_in(self, batch: list[Any]) -> None:
        for row in rows_of(batch, self._lengths):
            if type(row) is tuple:
                self._READERS[row[0]](self, *row[1:])
            else:
                self._add_short(row)

    def _add_short(self, calls: Any) -> None:
        plans = [call[0] for call in calls]
        self._runs.update(filter(self._counts, plans) if self._within else plans)
        self._window.add(zip(count(self._count), calls, repeat(self._within)))
        self._count += len(calls)

    @property
    def calls(self) -> int:
        """How many there were so far, those that are folded included."""
        return self._totals.total() + self._runs.total()

    def trace(self) -> model.Trace:
        failures, end = tuple(self._failures), self._end
        found = observations.Inspection(**{name: tuple(rows) for name, rows in self.noticed.items()})
        called = callbacks.Callbacks(**{name: tuple(rows) for name, rows in self._callbacks.items()})
        compared = self.reference or reference.Reference()
        records = (*failures, end, *self._assignments, found, called, compared)
        assembly = TraceBuilder(self._window, self._plans, self._infos, self._nbytes, records)
        events = assembly.events()
        totals = self._totals.copy()
        for number, runs in self._runs.items():
            totals[self._plans[number].site, self._plans[number].op] += runs
        return model.Trace(
            versions=self._versions,
            script=self.script,
            sources=self._sources,
            sites=tuple(self._sites),
            storages=assembly.storages(),
            tensors=assembly.tensors(),
            events=tuple(self._counted(event) if isinstance(event, model.Gap) else event for event in events),
            failures=tuple(assembly.record(failure) for failure in failures),
            end=assembly.record(end),
            claims=tuple(self._claims),
            assignments=tuple(assembly.record(assignment) for assignment in self._assignments),
            totals=tuple(model.Total(site, op, n) for (site, op), n in totals.items()),
            callbacks=assembly.record(called),
            inspection=assembly.record(found),
            reference=None if self.reference is None else assembly.record(compared),
        )

    def _add(self, content: Any) -> None:
        self._window.add([(self._count, content, self._within)])
        self._count += 1

    def _counts(self, plan: int) -> bool:
        """Whether a short row counts as a call: a step is told by one of its name for each parameter."""
        if not self._within or self._plans[plan].op != self._within:
            return True
        first, self._is_step_counted = not self._is_step_counted, True
        return first

    def _counted(self, gap: model.Gap) -> model.Gap:
        return replace(gap, count=self._gaps[gap.reason, gap.site])

    def _read_versions(self, tensorlens: str, torch: str, python: str) -> None:
        self._versions = model.Versions(tensorlens, torch, python)

    def _read_site(self, number: int, file: str, function: str, position: tuple[int, ...], *more: Any) -> None:
        line, end_line, column, end_column = position
        targets, caller, through = more
        text = self._sources.get(file, "")
        start, end = column_of(line_at(text, line), column), column_of(line_at(text, end_line), end_column)
        span = model.Span(file, line, start, end_line, end)
        self._sites[number : number + 1] = [model.Site(number, span, function, optional(caller), targets, through)]

    def _read_source(self, file: str, text: str) -> None:
        self._sources[file] = text

    def _read_storage(self, number: int, nbytes: int) -> None:
        self._nbytes[number] = nbytes

    def _read_tensor(self, number: int, *rest: Any) -> None:
        self._infos[number] = Info(*rest)

    def _read_call(self, op: str, site: int, *rest: Any) -> None:
        self._totals[site, op] += 1
        self._add((CALL, op, site, *rest))

    def _read_plan(self, number: int, *rest: Any) -> None:
        self._plans[number] = plan = CallTemplate(*rest)
        self._lengths[number] = 1 + 2 * max(plan.inputs, 0) + 4

    def _read_within(self, step: str) -> None:
        self._within = step
        self._is_step_counted = False

    def _read_alive(self, numbers: tuple[int, ...]) -> None:
        self._window.forget_all_but(numbers)

    def _read_backward_start(self, token: int) -> None:
        self._started[token] = self._count

    def _read_backward(self, token: int, op: str, site: int, *rest: Any) -> None:
        roots, gradients, inputs, retain_graph, create_graph, failed = rest
        changes = tuple(
            Gradient(tensor, _shown(before), _shown(after), Write(*write) if write else None, optional(held))
            for tensor, before, after, write, held in gradients
        )
        start = self._started.pop(token, self._count)
        if op != "autograd.grad":  # that one returns tensors and is a call as well
            self._totals[site, op] += 1
        self._add(
            model.Backward(
                self._count, op, site, accesses(roots), changes, start, retain_graph, create_graph, failed, inputs
            )
        )

    def _read_mode(self, site: int, mode: int, cause: str, entering: bool, decorator: bool) -> None:
        self._add(model.GradMode(self._count, site, MODES[mode], cause, entering, decorator))

    def _read_region(self, token: int, site: int, kind: str, entering: bool, checkpoint: int) -> None:
        if token != NONE:
            self._regions[token] = self._count
        self._add(model.Region(self._count, site, kind, entering, self._regions.get(checkpoint)))

    def _read_change(self, site: int, name: str, before: str, after: str, checkpoint: int) -> None:
        where = optional(site)
        self._add(model.Change(self._count, where, name, before, after, self._regions.get(checkpoint)))

    def _read_notice(self, site: int, category: str, message: str, op: str | None) -> None:
        self._add(model.Notice(self._count, optional(site), category, message, op))

    def _read_gap(self, reason: str, site: int) -> None:
        where = optional(site)
        self._gaps[reason, where] += 1
        if self._gaps[reason, where] == 1:
            self._add(model.Gap(self._count, reason, where))

    def _read_failure(self, kind: str, message: str, op: str, inputs: Any, *rest: Any) -> None:
        saved, stack, site = rest
        self._failures.append(
            model.Failure(
                index=self._count,
                kind=classify(message),
                type=kind,
                message=message,
                site=optional(site),
                op=op or None,
                inputs=accesses(inputs),
                saved=tuple(model.SavedTensor(*s) for s in saved),
                stack=stack,
                caught=True,
            )
        )

    def _read_values(self, failure: int, values: Any) -> None:
        told = tuple(
            failure_context.Value(name, kind, optional(site), optional(used)) for name, kind, site, used in values
        )
        if failure == NONE:
            last = self._window.last()
            if isinstance(last, model.Notice):
                self._window.replace_last(replace(last, values=told))
        elif failure < len(self._failures):
            found = self._failures[failure]
            self._failures[failure] = replace(found, values=(*found.values, *told))

    def _read_arguments(self, failure: int, arguments: Any) -> None:
        if failure < len(self._failures):
            told = tuple(failure_context.Argument(*argument) for argument in arguments)
            self._failures[failure] = replace(self._failures[failure], arguments=told)

    def _read_dead_ends(self, failure: int, nodes: Any, stopped: Any) -> None:
        if failure < len(self._failures):
            told = tuple(failure_context.Node(name, optional(sequence)) for name, sequence in nodes)
            last = next((failure_context.Node(name, optional(sequence)) for name, sequence in stopped), None)
            self._failures[failure] = replace(self._failures[failure], dead_ends=told, stopped_at=last)

    def _read_assignment(self, site: int, name: str, old: Any, new: Any, shared: bool) -> None:
        self._assignments.append(failure_context.Assignment(self._count, optional(site), name, old, new, shared))

    def _read_claim(self, *fields: Any) -> None:
        self._claims.append(claim.Claim(*fields))

    def _read_end(self, states: Any, bindings: Any) -> None:
        self._end = model.End(
            tuple(state_of(state, grad) for *state, grad in states),
            tuple(model.Binding(*b) for b in bindings),
        )

    def _read_outcome(self, outcome: Any, exit_code: int | None, failure: int) -> None:
        self.finished = True
        ended_by = optional(failure)
        if ended_by is not None:
            self._failures[ended_by] = replace(self._failures[ended_by], caught=False)
        self.script = replace(self.script, outcome=outcome, exit_code=exit_code, failure=ended_by)

    def _read_noticed(self, name: str, *fields: Any) -> None:
        self.noticed[name].append(observations.KINDS[name](self._count, *fields))

    def _read_callback(self, name: str, *fields: Any) -> None:
        self._callbacks[name].append(callbacks.record(self._count, name, fields))

    def _read_pass(self, roots: Any, gradients: Any, failed: bool) -> None:
        if reference.PASSES not in self.unchecked:
            self.passes.append(reference.passed(self._count - 1, roots, gradients, failed))

    def _read_uncompared(self, what: str, why: str) -> None:
        self.unchecked.setdefault(what, why)

    _READERS = (
        _read_versions,
        _read_site,
        _read_source,
        _read_storage,
        _read_tensor,
        _read_call,
        _read_backward_start,
        _read_backward,
        _read_mode,
        _read_notice,
        _read_gap,
        _read_failure,
        _read_claim,
        _read_end,
        _read_outcome,
        _read_region,
        _read_change,
        _read_values,
        _read_assignment,
        _read_arguments,
        _read_dead_ends,
        _read_noticed,
        _read_callback,
        _read_plan,
        _read_within,
        _read_alive,
        _read_pass,
        _read_uncompared,
    )
