"""Follows the first help of a report to the letter, and judges the edited program by the gradients that it uses."""

from __future__ import annotations

import re
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from support.warm import Warm
from support.warm_runs import WarmRuns

from advice.gradients import as_many, difference, prints_differ, used
from advice.programs import Place, Program
from advice.recording import Recorder, Run
from tensorlens.diagnostics import report_on
from tensorlens.diagnostics.shared.main_finding import main_finding
from tensorlens.records.edits import edited
from tensorlens.records.report import Diagnostic, Edit, Fix, Report
from tensorlens.runner.exact_writes import with_exact_lines

# From the best to the worst. "runs": the finding is gone, and there is no version to compare the gradients with.
# "changes": the gradients are not the right ones, and the help says so. "harmful": it does not.
Verdict = Literal["cured", "runs", "changes", "no edit", "no finding", "fails", "harmful"]
VERDICTS: tuple[Verdict, ...] = ("cured", "runs", "changes", "no edit", "no finding", "fails", "harmful")
ROUNDS = 3

# The roles whose line a reader takes for the cause; the others only say what happened before and after it.
CAUSE_ROLES = {
    "accumulated_here", "flag_changed_here", "grad_mode_off_here", "graph_built_here", "graph_cut_here",
    "mode_entered_here", "modified_here", "nonleaf_made_here", "replaced_here", "state_changed_here", "view_made_here",
}  # fmt: skip

# What a help says that changes the training on purpose.
_SAYS_SO = re.compile(
    r"(no longer|does not|do not|not|never) train|gets? no gradient"
    r"|(changes?|other|adds? to) (the |its |.*'s )?gradients?|changes the training"
)


@dataclass(frozen=True)
class Outcome:
    """Holds where a help led. `rounds` counts the helps that were followed; `remark` says what differs."""

    verdict: Verdict
    rounds: int = 0
    remark: str = ""
    help: str = ""


@dataclass(frozen=True)
class Judgement:
    """Holds the verdicts on a program's report: its cause, its first help, and the other helps that have edits."""

    program: Program
    code: str = ""
    labels: tuple[tuple[str, Place], ...] = ()  # role, line
    first: Outcome = field(default_factory=lambda: Outcome("no finding"))
    others: tuple[Outcome, ...] = ()
    findings: int = 0  # errors and warnings

    @property
    def names_cause(self) -> bool:
        """Returns whether a label marks a line of the true cause."""
        return not self.program.causes.isdisjoint(place for _, place in self.labels)

    @property
    def wrongly_blamed(self) -> set[Place]:
        """Returns the lines that the finding calls the cause, and that are no part of it."""
        part = self.program.causes | self.program.acceptable
        return {place for role, place in self.labels if role in CAUSE_ROLES and place not in part}

    @property
    def cause(self) -> bool:
        """Returns whether the finding names the true cause, and no line as the cause that is none."""
        return self.names_cause and not self.wrongly_blamed

    @property
    def harmful(self) -> int:
        """Returns how many helps with edits remove the error or warning, leave wrong gradients, and do not say so."""
        return sum(outcome.verdict == "harmful" for outcome in (self.first, *self.others))


@dataclass
class Judge:
    """Judges programs with a lens and a recorder. Keeps the runs that the edited programs are compared with."""

    lens: Warm
    recorder: Recorder
    _right: dict[tuple[str, str], list[Run]] = field(default_factory=dict)

    def judge(self, program: Program) -> Judgement:
        """Judges the report about a program."""
        with tempfile.TemporaryDirectory() as folder:
            script = program.written(Path(folder) / "program")
            report = self._report(script, program.kind == "silent")
            main = main_finding(report)
            if main is None:
                return Judgement(program)
            first, *others = [self._follow(program, script, main, fix) for fix in main.fixes] or [Outcome("no edit")]
            return Judgement(
                program=program,
                code=main.code,
                labels=tuple((label.role, _place(label.span.file, label.span.line)) for label in main.labels),
                first=first,
                others=tuple(outcome for outcome in others if outcome.verdict != "no edit"),
                findings=sum(each.severity != "note" for each in report.diagnostics),
            )

    def _report(self, script: Path, reference: bool) -> Report:
        """Returns the report of the lens; with `reference`, that of `--reference`, with all its further runs."""
        if reference:
            runs = WarmRuns(self.lens, script)
            runs.copies()
            trace = with_exact_lines(runs, runs.first().trace())
        else:
            _, trace = self.lens.traced(script)
        assert trace.script.outcome != "killed"
        return report_on(trace)

    def _follow(self, program: Program, script: Path, main: Diagnostic, fix: Fix) -> Outcome:
        """Applies a help to a copy, then, as long as the program fails, the first help of its next report."""
        titles: list[str] = []
        current, following = script, fix
        for number in range(1, ROUNDS + 1):
            if not following.edits:
                end: Verdict = "no edit" if number == 1 else "fails"
                remark = "" if number == 1 else f"the help of round {number} has no edit: {following.title}"
                return Outcome(end, number - 1, remark, _joined(titles, fix))
            titles.append(following.title)
            try:
                current = applied(current, following.edits, script.parent.with_name(f"{script.parent.name}-{number}"))
            except ValueError as error:
                return Outcome("fails", number, str(error), _joined(titles, fix))
            run = self.recorder.run(current, program.results)
            if run.status == 0:
                return self._compared(program, main, current, run, titles)
            next_one = main_finding(self._report(current, reference=False))
            if next_one is None or not next_one.fixes:
                break
            following = next_one.fixes[0]
        return Outcome("fails", len(titles), run.last_line[:120], _joined(titles, fix))

    def _compared(self, program: Program, main: Diagnostic, script: Path, run: Run, titles: list[str]) -> Outcome:
        rounds, title = len(titles), " | ".join(titles)
        differences = []
        for right in self.right_runs(program):
            if program.is_example and not as_many(run.record, right.record):
                continue
            text = difference(run.record, right.record)
            if text is None:
                remark = "prints other numbers" if prints_differ(run.printed, right.printed) else ""
                return Outcome("cured", rounds, remark, title)
            differences.append(text)
        if differences:
            verdict: Verdict = "changes" if _SAYS_SO.search(title) else "harmful"
            return Outcome(verdict, rounds, " / ".join(dict.fromkeys(differences)), title)
        left = [each.code for each in self._report(script, program.kind == "silent").diagnostics]
        if main.code in left:
            return Outcome("fails", rounds, "the finding is still there", title)
        return Outcome("runs", rounds, f"next: {left[0]}" if left else "", title)

    def right_runs(self, program: Program) -> list[Run]:
        """Returns the runs that an edited program is compared with.

        These are runs of its repaired versions. Without one, a program that only fails because a saved tensor was
        overwritten is run with copies of saved tensors: these are the right gradients.
        """
        key = program.name, "".join(program.files.values())
        if key not in self._right:
            with tempfile.TemporaryDirectory() as folder:
                scripts = [program.written(Path(folder) / str(n), n) for n in range(len(program.versions))]
                runs = [self.recorder.run(script, program.results) for script in scripts]
                assert all(run.status == 0 for run in runs), (program.name, [run.error for run in runs])
                self._right[key] = runs or self._with_copies(program, Path(folder) / "copies")
        return self._right[key]

    def _with_copies(self, program: Program, folder: Path) -> list[Run]:
        if program.kind != "error":
            return []
        run = self.recorder.run(program.written(folder), program.results, copies=True)
        return [run] if run.status == 0 and used(run.record) else []


def _joined(titles: list[str], first: Fix) -> str:
    return " | ".join(titles or [first.title])


def _place(file: str, line: int) -> Place:
    return Path(file).name, line


def applied(script: Path, edits: tuple[Edit, ...], folder: Path) -> Path:
    """Copies the folder of a script, with edits applied to the files. Returns the copied script.

    Raises:
        ValueError: edits overlap, or change a file that is not the program's.
    """
    while folder.exists():
        folder = folder.with_name(f"{folder.name}x")
    folder.mkdir()
    by_file: dict[Path, list[Edit]] = defaultdict(list)
    for edit in edits:
        by_file[(script.parent / edit.span.file).resolve()].append(edit)
    for file in script.parent.glob("*.py"):
        text = file.read_text(encoding="utf-8")
        changes = by_file.pop(file.resolve(), [])
        (folder / file.name).write_text(edited(text, changes) if changes else text, encoding="utf-8")
    if by_file:
        raise ValueError(f"edits of files that are not the program's: {', '.join(map(str, by_file))}")
    return folder / script.name


@contextmanager
def judge() -> Iterator[Judge]:
    """Starts a judge with processes of its own."""
    with Warm() as lens, Recorder() as recorder:
        yield Judge(lens, recorder)
