"""Turns the rows of a journal into a `Trace`."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from tensorlens.journal import census, compact_calls, facts, memory_rows, rows, sample_rows
from tensorlens.journal.call_counts import CallCounts
from tensorlens.journal.call_runs import CallRun
from tensorlens.journal.call_templates import CallTemplates
from tensorlens.journal.ended_passes import accesses, ended_pass
from tensorlens.journal.hook_targets import with_numbers
from tensorlens.journal.kept_tables import KeptTables
from tensorlens.journal.retention import WINDOW, Retention
from tensorlens.journal.row_buffer import Tag, typed
from tensorlens.journal.source_sites import SourceSites
from tensorlens.journal.trace_builder import MODES, TraceBuilder, state_of
from tensorlens.records import callbacks, claim, eager, failure_context, model, observations, reference
from tensorlens.records.error_messages import classify

LONG = 100_000  # calls


class Reader:
    """Builds a `Trace` from rows. `read` takes more rows; `trace` gives the trace of the rows so far at any time."""

    def __init__(self, script: model.Script, window: int = WINDOW) -> None:
        self.script = script
        self.versions = model.Versions("", "", "")  # empty until the process that runs the program writes
        self.source_sites = SourceSites()
        self._sizes = census.StorageSizes()
        self._tensors: dict[int, memory_rows.TensorRow | memory_rows.TensorKind] = {}
        self._templates = CallTemplates()
        self._compact_calls = CallCounts(self._templates)
        self._retention = Retention(window, self._tensors)
        self._within = ""
        self._gaps: Counter[rows.GapRow] = Counter()
        self.count = 0  # of the events: the index that the next one gets
        self._started: dict[int, int] = {}  # token of a backward pass -> index of its first event
        self._checkpoints: dict[int, int] = {}  # token -> index of the event that entered it
        self._failures: list[model.Failure] = []
        self._claims: list[claim.Claim] = []
        self._assignments: list[failure_context.Assignment] = []
        self._totals: Counter[tuple[int, str]] = Counter()
        self._end = model.End()
        self._functions: list[callbacks.Function] = []
        self._registrations: list[callbacks.Registration] = []
        self._runs: deque[callbacks.Run] = deque(maxlen=window)
        self._facts = facts.Facts()
        self.facts = self._facts.tables
        self.passes: list[reference.Pass] = []
        self.steps: list[reference.StepSample] = []
        self.stepped: tuple[reference.StepSample, ...] = ()  # the same, with the numbers of the trace that was built
        self.numbers: dict[int, int] = {}  # the tracer's number of a tensor -> its number in that trace
        self.unchecked: dict[str, str] = {}  # check of `--reference` that failed itself -> why
        self.reference: reference.Reference | None = None  # the comparison with the second run, for the trace
        self.eager: eager.EagerComparison | None = None  # the comparison with a run that compiles nothing
        self.tensor_numbers: dict[int, int] = {}  # the tracer's ids -> the ids in the trace that was built
        self._kept = KeptTables()
        self.return_unused: Callable[[], object] | None = None  # called before a long run's trace takes more memory
        self.finished = self._is_broken = False

    def read(self, batches: Iterable[list[Any]]) -> None:
        """Reads batches of rows. After a row that can't be read it reads no more."""
        for batch in batches:
            self._kept.forget()
            try:
                if not self._is_broken:
                    self._read_batch(batch)
            except Exception:  # the program has written over its journal: the rows before are good
                self.break_off(rows.BROKEN)

    def break_off(self, reason: str) -> None:
        """Ends the reading early, and records a gap that says why."""
        if not self._is_broken:
            self._is_broken = True
            self.note_gap(reason)

    def note_gap(self, reason: str) -> None:
        """Records that something of the run is not known."""
        self._read_gap(rows.GapRow(reason, None))

    def _read_batch(self, batch: list[Any]) -> None:
        items, known = compact_calls.split(batch)
        tables = self._sizes.latest, self._tensors, memory_rows.TensorRow, memory_rows.TensorKind
        position = 0
        while (position := compact_calls.read_tables(items, position, *tables)) < len(items):
            item = items[position]
            if isinstance(item, bytes):
                self._add_compact_calls(item)
            else:
                READERS[item[0]](self, typed(item))
            position += 1
        if known < len(batch):
            raise ValueError(f"no row begins with {batch[known]!r}")

    def _add_compact_calls(self, calls: bytes) -> None:
        run = CallRun(self.count, calls, self._compact_calls.ends(calls), self._within)
        self._compact_calls.add(run)
        self._retention.add_run(run)
        self.count += run.stop
        if run.size < len(calls):
            raise ValueError("a compact call is incomplete, or of no template")

    @property
    def calls(self) -> int:
        """The number of calls so far, with those that a long run has folded."""
        return self._totals.total() + self._compact_calls.total

    def trace(self) -> model.Trace:
        """Builds the trace of the rows so far."""
        sites = self.source_sites.records()
        totals = self._compact_calls.totals(self._totals, sites)  # first: counting takes a large table for a moment
        inspection = self._facts.records()
        called = callbacks.Callbacks(tuple(self._functions), tuple(self._registrations), tuple(self._runs))
        compared, eagerly = self.reference or reference.Reference(), self.eager or eager.EagerComparison()
        records = (*self._failures, self._end, *self._assignments, inspection, called, compared, eagerly, *self.steps)
        built = self._kept.of(self.count, records, lambda: self._builder(records))
        builder, events = built.builder, built.events
        dropped = (rows.LEFT_OUT, self._retention.left_out), (facts.LEFT_OUT, self._facts.left_out)
        left_out = [model.Gap(self.count + n, reason, None, each) for n, (reason, each) in enumerate(dropped) if each]
        self.stepped = tuple(map(builder.record, self.steps))
        self.tensor_numbers = builder.tensor_numbers
        return model.Trace(
            versions=self.versions,
            script=self.script,
            sources=self.source_sites.sources,
            sites=sites,
            storages=built.storages,
            tensors=built.tensors,
            events=(*(self._with_count(each) if isinstance(each, model.Gap) else each for each in events), *left_out),
            failures=tuple(map(builder.record, self._failures)),
            end=builder.record(self._end),
            claims=tuple(self._claims),
            assignments=tuple(builder.record(assignment) for assignment in self._assignments),
            totals=totals,
            callbacks=with_numbers(builder.record(called), builder.tensor_numbers),
            inspection=builder.record(inspection),
            reference=None if self.reference is None else builder.record(compared),
            eager=None if self.eager is None else builder.record(eagerly),
        )

    def _builder(self, records: Any) -> TraceBuilder:
        return_unused = self.return_unused if self.calls > LONG else None
        if return_unused is not None:
            return_unused()
        builder = TraceBuilder(self._retention, self._templates, self._tensors, self._sizes.all(), records)
        if return_unused is not None:
            return_unused()
        return builder

    def _add(self, content: Any) -> None:
        self._retention.add(self.count, content, self._within)
        self.count += 1

    def _with_count(self, gap: model.Gap) -> model.Gap:
        return replace(gap, count=self._gaps[rows.GapRow(gap.reason, gap.site)])

    def _read_versions(self, row: rows.VersionsRow) -> None:
        self.versions = model.Versions(*row)

    def _read_site(self, row: rows.SiteRow) -> None:
        self.source_sites.add_site(row)

    def _read_source(self, row: rows.SourceRow) -> None:
        self.source_sites.add_source(row)

    def _read_storage(self, row: memory_rows.StorageRow) -> None:
        self._sizes.latest[row.storage] = row.nbytes

    def _read_tensor(self, row: memory_rows.TensorRow) -> None:
        self._tensors[row.tensor] = row

    def _read_tensors(self, row: memory_rows.TensorsRow) -> None:
        numbers = memoryview(row.tensors).cast("q")
        self._tensors.update(dict.fromkeys(numbers, memory_rows.TensorKind(*row[1:])))
        if row.nbytes is not None:
            self._sizes.latest.update(dict.fromkeys(numbers, row.nbytes))

    def _read_call(self, row: rows.CallRow) -> None:
        self._totals[row.site, row.op] += 1
        self._add(row)

    def _read_call_template(self, row: rows.CallTemplateRow) -> None:
        self._compact_calls.add_template(row)

    def _read_within(self, row: rows.WithinRow) -> None:
        self._within = row.step
        self._compact_calls.begin_step()

    def _read_alive(self, row: memory_rows.AliveRow) -> None:
        self._retention.forget_all_but(row.tensors)
        others = census.other_storages(self._tensors, self._retention, self._failures)
        self._sizes.forget_all_but(self._tensors, others)
        census.drop_events(self._checkpoints, self.facts, self._retention)
        self._assignments = census.kept_assignments(self._assignments, self._tensors)

    def _read_backward_start(self, row: rows.BackwardStartRow) -> None:
        self._started[row.token] = self.count

    def _read_backward(self, row: rows.BackwardRow) -> None:
        if row.op != "autograd.grad":  # that one returns tensors and is a call as well
            self._totals[row.site, row.op] += 1
        self._add(ended_pass(row, self._started.pop(row.token, self.count)))

    def _read_grad_mode(self, row: rows.GradModeRow) -> None:
        mode = MODES[row.mode]
        self._add(model.GradMode(self.count, row.site, mode, row.cause, row.entering, row.decorator))

    def _read_region(self, row: rows.RegionRow) -> None:
        if row.token is not None:
            self._checkpoints[row.token] = self.count
        self._add(model.Region(self.count, row.site, row.kind, row.entering, self._checkpoint(row.checkpoint)))

    def _read_change(self, row: rows.ChangeRow) -> None:
        checkpoint = self._checkpoint(row.checkpoint)
        self._add(model.Change(self.count, row.site, row.name, row.before, row.after, checkpoint))

    def _checkpoint(self, token: int | None) -> int | None:
        """Returns the index of the event that entered a checkpoint."""
        return None if token is None else self._checkpoints.get(token)

    def _read_notice(self, row: rows.NoticeRow) -> None:
        self._add(model.Notice(self.count, *row))

    def _read_gap(self, row: rows.GapRow) -> None:
        self._gaps[row] += 1
        if self._gaps[row] == 1:
            self._add(model.Gap(self.count, row.reason, row.site))

    def _read_failure(self, row: rows.FailureRow) -> None:
        self._failures.append(
            model.Failure(
                index=self.count,
                kind=classify(row.message),
                type=row.type,
                message=row.message,
                site=row.site,
                op=row.op,
                inputs=accesses(row.inputs),
                saved=tuple(failure_context.SavedTensor(*fields) for fields in row.saved),
                stack=row.stack,
                caught=True,
            )
        )

    def _read_values(self, row: rows.ValuesRow) -> None:
        values = tuple(failure_context.Value(*fields) for fields in row.values)
        if row.failure is None:
            last = self._retention.last()
            if isinstance(last, model.Notice):
                self._retention.replace_last(replace(last, values=values))
        elif row.failure < len(self._failures):
            failure = self._failures[row.failure]
            self._failures[row.failure] = replace(failure, values=(*failure.values, *values))

    def _read_arguments(self, row: rows.ArgumentsRow) -> None:
        if row.failure < len(self._failures):
            arguments = tuple(failure_context.Argument(*fields) for fields in row.arguments)
            self._failures[row.failure] = replace(self._failures[row.failure], arguments=arguments)

    def _read_dead_ends(self, row: rows.DeadEndsRow) -> None:
        if row.failure < len(self._failures):
            nodes = tuple(failure_context.Node(*fields) for fields in row.nodes)
            last = next((failure_context.Node(*fields) for fields in row.stopped_at), None)
            self._failures[row.failure] = replace(self._failures[row.failure], dead_ends=nodes, stopped_at=last)

    def _read_assignment(self, row: rows.AssignmentRow) -> None:
        self._assignments.append(failure_context.Assignment(self.count, *row))

    def _read_claim(self, row: rows.ClaimRow) -> None:
        self._claims.append(claim.Claim(*row.fields))

    def _read_end(self, row: rows.EndRow) -> None:
        self._end = model.End(
            tuple(state_of(state, grad) for *state, grad in row.states),
            tuple(model.Binding(*fields) for fields in row.bindings),
        )

    def _read_outcome(self, row: rows.OutcomeRow) -> None:
        self.finished = True
        outcome: Any = row.outcome
        if row.failure is not None:
            self._failures[row.failure] = replace(self._failures[row.failure], caught=False)
        self.script = replace(self.script, outcome=outcome, exit_code=row.exit_code, failure=row.failure)

    def _read_fact(self, row: rows.FactRow) -> None:
        fact = self._facts.read(self.count, row)
        if isinstance(fact, observations.RecordingSwitch) and not fact.recording:
            self.count += 1  # no event has this index, as with calls that are folded

    def _read_function(self, row: rows.FunctionRow) -> None:
        self._functions.append(callbacks.Function(*row))

    def _read_registration(self, row: rows.RegistrationRow) -> None:
        self._registrations.append(callbacks.Registration(*row))

    def _read_callback_run(self, row: rows.CallbackRunRow) -> None:
        values = tuple(callbacks.ReturnedValue(*fields) for fields in row.values)
        ending: Any = row.ending
        run = callbacks.Run(self.count, row.registration, row.returned, values, row.given, row.node, ending)
        self._runs.append(run)

    def _read_pass(self, row: sample_rows.PassRow) -> None:
        if reference.PASSES not in self.unchecked:
            self.passes.append(reference.passed(self.count - 1, *row))

    def _read_step_sample(self, row: sample_rows.StepSampleRow) -> None:
        self.steps.append(reference.sampled_step(self.count - 1, *row))

    def _read_uncompared(self, row: sample_rows.UncomparedRow) -> None:
        self.unchecked.setdefault(row.check, row.reason)


READERS: dict[int, Callable[[Reader, Any], None]] = {tag: getattr(Reader, f"_read_{tag.name.lower()}") for tag in Tag}
"""The method for the rows of each tag."""
