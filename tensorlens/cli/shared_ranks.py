"""Shares the ranks of this machine with other machines, in the folder that `TENSORLENS_RANKS` names."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tensorlens.errors import UsageError
from tensorlens.records.model import Rank
from tensorlens.runner.rank_folder import RankFolder, folder_of
from tensorlens.runner.ranks import FOLDER, host

if TYPE_CHECKING:
    from tensorlens.cli.gate import Gate
    from tensorlens.journal.process_folder import ProcessRecord
    from tensorlens.records.merged_report import MergedReport
    from tensorlens.records.model import Trace


class SharedRanks:
    """Makes the other machines wait for the ranks of this one, from the moment at which they are known."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._folders: dict[int, RankFolder] = {}

    def close(self) -> None:
        self._stack.close()

    def joined(self, record: ProcessRecord) -> None:
        """Notes a rank that runs on this machine."""
        environment = {FOLDER: os.environ[FOLDER], "TORCHELASTIC_RESTART_COUNT": str(record.restart)}
        with suppress(UsageError):
            rank = Rank(record.rank, record.world, host())
            self._folders[record.rank] = self._stack.enter_context(folder_of(rank, environment))

    def merged(self, traces: Sequence[Trace], gate: Gate) -> list[MergedReport]:
        """Saves the ranks of this machine. Returns the report of all machines if this one is the last, else nothing."""
        from tensorlens.cli.merged_reports import merged_report, report_of
        from tensorlens.cli.rank_reports import loaded

        paths: tuple[Path, ...] = ()
        for trace in traces:
            rank = trace.script.rank
            if rank is not None and rank.number in self._folders:
                paths = self._folders[rank.number].save(trace)
        reports = [gate.passed(report_of(trace)) for trace in loaded(paths)]
        return [merged_report(reports, gate)] if reports else []
