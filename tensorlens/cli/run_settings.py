"""Holds the options of the runs that `explain` makes, and refuses those that do not go together."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tensorlens.errors import UsageError
from tensorlens.records.step_choice import StepChoice, choice_of

if TYPE_CHECKING:
    from tensorlens.cli.gate import Gate
    from tensorlens.cli.trailing_options import TrailingOptions


@dataclass(frozen=True, slots=True)
class RunSettings:
    """Holds the options of the runs."""

    timeout: float | None = None
    reference: str = ""  # "copies" or "eager": what the second run is
    attempt: bool = False
    fix: bool = False
    write: bool = False
    every: object = None
    steps: object = None
    training: bool = False
    baseline: Path | None = None
    fail_on: str = ""
    follow: bool = False  # trace every process that the program starts

    def chosen_steps(self) -> StepChoice | None:
        """Returns the training steps to record; None: all.

        Raises:
            UsageError: a value is wrong, or the options do not go together.
        """
        if self.every is not None and self.steps is not None:
            raise UsageError("--every and --steps do not go together")
        try:
            chosen = choice_of(self.every, self.steps)
        except ValueError as error:
            raise UsageError(f"--{error}") from None
        if chosen is not None and (self.reference or self.attempt or self.fix or self.write):
            raise UsageError(
                "--every and --steps do not go with --reference, --try and --fix: these compare whole runs"
            )
        return chosen

    def gate(self) -> Gate:
        """Returns which findings make the command fail.

        Raises:
            UsageError: the baseline is no report, or there is no such severity.
        """
        from tensorlens.cli.gate import Gate

        return Gate(self.baseline, self.fail_on or "error")

    def check_runs(self) -> None:
        """Raises a UsageError if the runs that are asked for do not go together, or not with one rank of several."""
        from tensorlens.runner.ranks import rank_in

        is_rank, others = rank_in(os.environ) is not None, self.attempt or self.fix or self.write
        if self.reference not in ("", "copies", "eager"):
            raise UsageError(f"--reference takes eager, or no value, not {self.reference!r}")
        if self.reference == "eager" and others:
            raise UsageError("--reference=eager goes without --try and --fix")
        if self.reference == "eager" and is_rank:
            raise UsageError("--reference=eager runs one process: it can't repeat a distributed run")
        if self.follow and (others or self.reference):
            raise UsageError("--follow goes without --reference, --try and --fix: these run one process again")
        if self.follow and is_rank:
            raise UsageError("--follow is for the launcher: tensorlens explain --follow -m torch.distributed.run ...")

    def joined_with(self, trailing: TrailingOptions) -> RunSettings:
        """Returns the settings together with the options after the script."""
        return RunSettings(
            trailing.timeout or self.timeout,
            trailing.reference or self.reference,
            trailing.attempt or self.attempt,
            trailing.fix or self.fix,
            trailing.write or self.write,
            self.every if trailing.every is None else trailing.every,
            self.steps if trailing.steps is None else trailing.steps,
            trailing.training or self.training,
            trailing.baseline or self.baseline,
            trailing.fail_on or self.fail_on,
            trailing.follow or self.follow,
        )
