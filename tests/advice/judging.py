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

from advice.gradients import difference, prints_differ
from advice.programs import Place, Program
from advice.recording import Recorder, Run
from tensorlens.diagnostics import report_on
from tensorlens.records.edits import edited
from tensorlens.records.report import Diagnostic, Edit, Fix, Report
from tensorlens.render.report.verdict import main_finding

Verdict = Literal["cured", "differs", "harmful", "fails", "no edit", "no finding"]
ROUNDS = 3

# The roles whose line a reader takes for the cause; the others only say what happened before and after it.
CAUSE_ROLES = {
    "accumulated_here", "flag_changed_here", "grad_mode_off_here", "graph_built_here", "graph_cut_here",
    "mode_entered_here", "modified_here", "nonleaf_made_here", "replaced_here", "state_changed_here", "view_made_here",
}  # fmt: skip

# What a help says if it changes the training on purpose.
_SAYS_SO = re.compile(
    r"(no longer|does not|do not|not|never) train|gets? no gradient"
    r"|(changes?|other|adds? to) (the |its |.*'s )?gradients?"
    r"|stays? as (it was|they were)|changes the training|uses the new values"
)


@dataclass(frozen=True)
class Outcome:
    """The end of following one help. `rounds` counts the helps that were followed; `remark` says what differs."""

    verdict: Verdict
    rounds: int = 0
    remark: str = ""
    help: str = ""


@dataclass(frozen=True)
class Judgement:
    """Holds the verdicts on a program's report: its cause, its first help, and the other helps that have edits."""

    name: str
    kind: str
    topic: str
    code: str
    cause: bool
    labels: str
    first: Outcome
    others: tuple[Outcome, ...] = ()
    findings: int = 0

    @property
    def quiet(self) -> bool:
        return not self.findings

    @property
    def has_edit(self) -> bool:
        return self.first.verdict not in ("no edit", "no finding")

    @property
    def harmful(self) -> int:
        return sum(outcome.verdict == "harmful" for outcome in (self.first, *self.others))


@dataclass
class Judge:
    """Judges programs with a lens and a recorder; the records of repaired versions are kept."""

    lens: Warm
    recorder: Recorder
    _right: dict[Path, list[Run]] = field(default_factory=dict)

    def judge(self, program: Program) -> Judgement:
        """Judges what the lens says about a program."""
        with tempfile.TemporaryDirectory() as folder:
            script = program.copy_to(Path(folder) / "program")
            report = self._report(script, program.kind == "silent")
            main = main_finding(report)
            if main is None:
                return _without_finding(program)
            first, *others = [self._follow(program, script, fix, Path(folder)) for fix in main.fixes] or [NO_EDIT]
            return Judgement(
                name=program.name,
                kind=program.kind,
                topic=program.topic,
                code=main.code,
                cause=cause_is_right(main, program),
                labels=", ".join(f"{_short(file, script)}:{line}" for file, line in labelled(main)),
                first=first,
                others=tuple(outcome for outcome in others if outcome.verdict != "no edit"),
                findings=sum(each.severity != "note" for each in report.diagnostics),
            )

    def _report(self, script: Path, reference: bool) -> Report:
        ran, trace = (self.lens.compared if reference else self.lens.traced)(script)
        assert trace.script.outcome != "killed", ran.stderr
        return report_on(trace)

    def _follow(self, program: Program, script: Path, fix: Fix, folder: Path) -> Outcome:
        """Applies a help to a copy, then, as long as the program fails, the first help of its next report."""
        titles: list[str] = []
        current, following = script, fix
        for number in range(1, ROUNDS + 1):
            if not following.edits:
                return Outcome(
                    "no edit" if number == 1 else "fails", number - 1, _no_edit(number), _joined(titles, fix)
                )
            titles.append(following.title)
            current = applied(current, following.edits, Path(tempfile.mkdtemp(dir=folder)) / "program")
            run = self.recorder.run(current, program.results)
            if run.status == 0:
                return self._compared(program, run, number, _joined(titles, fix))
            main = main_finding(self._report(current, reference=False))
            if main is None or not main.fixes:
                break
            following = main.fixes[0]
        return Outcome("fails", len(titles), run.last_line[:120], _joined(titles, fix))

    def _compared(self, program: Program, run: Run, rounds: int, title: str) -> Outcome:
        differences = []
        for right in self.right_runs(program):
            text = difference(run.record, right.record)
            if text is None:
                remark = "prints other numbers" if prints_differ(run.printed, right.printed) else ""
                return Outcome("cured", rounds, remark, title)
            differences.append(text)
        verdict: Verdict = "differs" if _SAYS_SO.search(title) else "harmful"
        return Outcome(verdict, rounds, " / ".join(dict.fromkeys(differences)), title)

    def right_runs(self, program: Program) -> list[Run]:
        """Returns a run of each repaired version of a program."""
        if program.script not in self._right:
            with tempfile.TemporaryDirectory() as folder:
                scripts = [program.copy_to(Path(folder) / str(n), n) for n in range(len(program.versions))]
                self._right[program.script] = [self.recorder.run(script, program.results) for script in scripts]
        return self._right[program.script]


NO_EDIT = Outcome("no edit")


def _joined(titles: list[str], first: Fix) -> str:
    return " | ".join(titles or [first.title])


def _no_edit(number: int) -> str:
    return "" if number == 1 else f"the help of round {number} has no edit"


def _without_finding(program: Program) -> Judgement:
    first = Outcome("no finding")
    return Judgement(program.name, program.kind, program.topic, "", False, "", first)


def applied(script: Path, edits: tuple[Edit, ...], folder: Path) -> Path:
    """Copies the folder of a script, with edits applied to the files. Returns the copied script."""
    folder.mkdir(parents=True, exist_ok=True)
    by_file: dict[Path, list[Edit]] = defaultdict(list)
    for edit in edits:
        by_file[(script.parent / edit.span.file).resolve()].append(edit)
    for file in script.parent.iterdir():
        if file.is_file():
            text = file.read_text(encoding="utf-8")
            changes = by_file.pop(file.resolve(), [])
            (folder / file.name).write_text(edited(text, changes) if changes else text, encoding="utf-8")
    if by_file:
        raise ValueError(f"edits of files that are not the program's: {', '.join(map(str, by_file))}")
    return folder / script.name


def labelled(diagnostic: Diagnostic) -> list[Place]:
    """Returns the labelled lines of a finding, without repetition."""
    return list(dict.fromkeys((label.span.file, label.span.line) for label in diagnostic.labels))


def cause_is_right(diagnostic: Diagnostic, program: Program) -> bool:
    """Returns whether a finding labels a line of the true cause, and calls no line the cause that is none."""
    shown = [
        (label.role, Path(label.span.file).name, line)
        for label in diagnostic.labels
        for line in range(label.span.line, label.span.end_line + 1)
    ]
    allowed = program.causes | program.acceptable
    blamed = [
        {(Path(label.span.file).name, line) for line in range(label.span.line, label.span.end_line + 1)}
        for label in diagnostic.labels
        if label.role in CAUSE_ROLES
    ]
    return any((file, line) in program.causes for _, file, line in shown) and all(lines & allowed for lines in blamed)


def _short(file: str, script: Path) -> str:
    return "" if Path(file).name == script.name else Path(file).stem


@contextmanager
def judge() -> Iterator[Judge]:
    """Starts a judge with processes of its own."""
    with Warm() as lens, Recorder() as recorder:
        yield Judge(lens, recorder)
