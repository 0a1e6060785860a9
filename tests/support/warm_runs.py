"""Makes the compared runs of a program in forks of a warm process (see `support/warm.py`)."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from support.warm import Warm
from tensorlens.diagnostics import report_on
from tensorlens.journal.child_config import ComparedRun, Intervention
from tensorlens.records.report import Report
from tensorlens.records.source_encoding import encoded
from tensorlens.runner.child_run import Exited
from tensorlens.runner.compared_runs import ComparedRuns, FinishedRun
from tensorlens.runner.launch import compare_with_copies
from tensorlens.trials.fixes import with_tried_fixes


class WarmRuns(ComparedRuns):
    """The runs of one program. `count` says how many there were; `stop_at` is the number of one that Ctrl-C ends."""

    def __init__(self, warm: Warm, script: Path, stop_at: int | None = None) -> None:
        self._warm, self._script, self._stop_at = warm, script, stop_at
        self.count = 0

    def first(self, on_start: Callable[[], None] = lambda: None) -> FinishedRun:
        return self._made(ComparedRun(7, False))

    def again(
        self,
        *,
        copy_saved_tensors: bool = False,
        keep_graphs: bool = False,
        interventions: tuple[Intervention, ...] = (),
        sources: Mapping[str, str] | None = None,
    ) -> FinishedRun:
        with tempfile.TemporaryDirectory() as folder:
            replaced = []
            for number, (file, text) in enumerate((sources or {}).items()):
                copy = Path(folder, f"{number}.py")
                copy.write_bytes(encoded(text))
                replaced.append((file, str(copy)))
            return self._made(ComparedRun(7, False, copy_saved_tensors, keep_graphs, interventions, tuple(replaced)))

    def compiling(
        self,
        compiled: tuple[int, ...] | None,
        *,
        eager_random: bool = False,
        in_double: bool = False,
        unhooked: tuple[int, ...] = (),
    ) -> FinishedRun:
        changes = {"compiled": compiled, "eager_random": eager_random, "in_double": in_double, "unhooked": unhooked}
        return self._made(replace(ComparedRun(7, False), **changes))  # type: ignore[arg-type]

    def _made(self, run: ComparedRun) -> FinishedRun:
        self.count += 1
        ran, reader = self._warm.read(self._script, run)
        stopped = self.count == self._stop_at
        return FinishedRun(reader, Exited(ran.returncode, False, stopped), ran.stdout.encode())


def tried(runs: WarmRuns) -> Report:
    """Returns the report of a program with the verdicts of its fixes, as `--fix` makes it."""
    first = runs.first()
    if first.exited.returncode == 0:
        compare_with_copies(runs, first)
    return with_tried_fixes(runs, first, report_on(first.trace()), lambda done, needed: None)
