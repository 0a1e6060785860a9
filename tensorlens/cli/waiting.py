"""Shows on standard error that the command is at work, for as long as nothing else writes to the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Report = Callable[[int, int], None]
"""Takes the number of steps that are done, and the number of all."""


@contextmanager
def working(text: str) -> Iterator[Report]:
    """Shows `text` and a bar while the block runs, if standard error is a terminal. The bar is erased at the end."""
    if not sys.stderr.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.theme import Theme

    class Terminal(Console):
        def show_cursor(self, show: bool = True) -> bool:  # noqa: ARG002
            return False  # a command that is killed would leave the cursor hidden

    bar = Progress(
        SpinnerColumn("line", style="cyan"),
        TextColumn("{task.description}", markup=False),
        BarColumn(24, style="dim", complete_style="cyan", finished_style="cyan", pulse_style="cyan"),
        TimeElapsedColumn(),
        console=Terminal(stderr=True, color_system="standard", theme=Theme({"progress.elapsed": "dim"})),
        transient=True,
        refresh_per_second=4,  # rarely: what is being measured must not be disturbed
        redirect_stdout=False,
        redirect_stderr=False,
    )
    with bar:
        task = bar.add_task(text, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
