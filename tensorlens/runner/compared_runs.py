"""Runs a program several times from the same random state and the same standard input, to compare its gradients."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tensorlens.journal.child_config import ComparedRun, Intervention, Measurement
from tensorlens.runner.child_run import ChildRun, Exited, RunOptions, exited_script, run_child
from tensorlens.runner.printed_output import NOTHING, Printed, captured_output
from tensorlens.runner.self_check import unseen_in_this_torch
from tensorlens.runner.stdin_replay import repeatable_stdin
from tensorlens.runner.targets import Target

if TYPE_CHECKING:  # imported after the first child has been started
    from tensorlens.journal.reader import Reader
    from tensorlens.records.model import Trace

_PATIENCE, _LEAST = 20.0, 60.0  # a further run is stopped after so many times the first run's time, and seconds


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A run that has ended, and what it printed: nothing for the first, whose output the user has seen.

    `complete` is its trace, if that has been made already and nothing was added to its facts since.
    """

    reader: Reader
    exited: Exited
    printed: Printed = NOTHING
    complete: Trace | None = None

    @property
    def was_stopped(self) -> bool:
        """Returns whether a time limit or Ctrl-C ended the run."""
        return self.exited.timed_out or self.exited.interrupted

    def trace(self) -> Trace:
        """Returns the trace of the run, with what has been added to its facts."""
        from tensorlens.runner.follow import trace_of

        return trace_of(self.reader, exited_script(self.reader, self.exited))


class FurtherRuns(Protocol):
    """Runs a program once more, with interventions."""

    def again(self, *, interventions: tuple[Intervention, ...]) -> FinishedRun: ...


class ComparedRuns:
    """Makes the runs of one program. The first is the user's: it has the terminal. The output of the others is kept."""

    has_ranks = False  # the first run started ranks of a distributed run

    def __init__(
        self, target: Target, options: RunOptions, rewind: Callable[[], int | None], samples: bool = True
    ) -> None:
        seed = int.from_bytes(os.urandom(4), "little")
        sets_hash_seed = "PYTHONHASHSEED" not in os.environ
        self._target, self._rewind = target, rewind
        self._run = ComparedRun(seed, sets_hash_seed, samples=samples)
        environment = {**os.environ, "PYTHONHASHSEED": str(seed)} if sets_hash_seed else None
        self._child = ChildRun(options, self._run, environment, unseen=unseen_in_this_torch())

    def first(self, on_start: Callable[[], None] = lambda: None) -> FinishedRun:
        """Runs the program as the user knows it. With `--training`, a further run may explain what it found."""
        begins = time.monotonic()
        reader, exited, _ = run_child(self._target, self._child, on_start)
        limit = max(_LEAST, _PATIENCE * (time.monotonic() - begins))
        processes = self._child.options.processes
        self.has_ranks = processes is not None and processes.has_ranks
        options = replace(self._child.options, show_progress=False, processes=None)
        self._child = replace(self._child, options=replace(options, timeout=options.timeout or limit))
        run = FinishedRun(reader, exited)
        if self._child.options.training:
            from tensorlens.runner.second_run import complete  # not above: other runs have none

            return replace(run, complete=complete(self, run, self._child.options.terms_of))
        return run

    def again(
        self,
        *,
        copy_saved_tensors: bool = False,
        keep_graphs: bool = False,
        interventions: tuple[Intervention, ...] = (),
        sources: Mapping[str, str] | None = None,
    ) -> FinishedRun:
        """Runs the program once more, with changes. `sources` has the texts of its files that are replaced."""
        from tensorlens.records.source_encoding import encoded  # not above: a plain run needs no tokenizer

        with tempfile.TemporaryDirectory(prefix="tensorlens-") as folder:
            replaced = []
            for number, (file, text) in enumerate((sources or {}).items()):
                copy = Path(folder, f"{number}.py")
                copy.write_bytes(encoded(text))
                replaced.append((file, str(copy)))
            run = replace(
                self._run,
                copy_saved_tensors=copy_saved_tensors,
                keep_graphs=keep_graphs,
                interventions=interventions,
                sources=tuple(replaced),
            )
            return self._made(run)

    def compiling(
        self,
        compiled: tuple[int, ...] | None,
        *,
        eager_random: bool = False,
        in_double: bool = False,
        unhooked: tuple[int, ...] = (),
    ) -> FinishedRun:
        """Runs the program once more, with some of its compiled functions. `ComparedRun` has the changes."""
        changes = {"compiled": compiled, "eager_random": eager_random, "in_double": in_double, "unhooked": unhooked}
        return self._made(replace(self._run, **changes))  # type: ignore[arg-type]

    def explaining(
        self, find_nonfinite: bool, terms: tuple[Measurement, ...], check_functions: bool = False
    ) -> FinishedRun:
        """Runs the program once more. Searches for the operation that makes the first infinity or NaN, measures the
        terms of losses and the columns of gradients, and checks custom Functions."""
        what = replace(self._run, samples=False, find_nonfinite=find_nonfinite, terms=terms)
        return self._made(replace(what, check_functions=check_functions))

    def repeats_input(self) -> bool:
        """Returns whether a further run has the standard input that the first one had."""
        return self._rewind() is None

    def _made(self, run: ComparedRun) -> FinishedRun:
        with captured_output() as output:
            child = replace(self._child, compared=run, stdin=self._rewind(), printed=output.descriptor)
            reader, exited, _ = run_child(self._target, child)
        return FinishedRun(reader, exited, output.printed)


@contextmanager
def compared_runs(target: Target, options: RunOptions, samples: bool = True) -> Iterator[ComparedRuns]:
    """Yields the runs of a program. They share its standard input, if that can be read again.

    Without `samples`, the gradients of the runs are not written, so that nothing can compare them.
    """
    with repeatable_stdin(target.kind == "stdin") as rewind:
        yield ComparedRuns(target, options, rewind, samples)
