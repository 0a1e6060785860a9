"""Makes the options of the tables in `report_options` into the types of the commands' parameters."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from tensorlens.cli.report_options import OPTIONS, PAGE_OPTIONS, RANK_OPTIONS, TEXT_OPTIONS, ReportOption

YOUR_CODE, LEARN = "Your own code", "Learn"  # groups of commands
REPORT, RUN, COURSE, INPUT = "What is shown", "The run", "The course", "The tensor x"  # groups of options


def grouped(group: str, *flags: str, **more: Any) -> Any:
    """Makes a typer option in a group of the help page."""
    return typer.Option(*flags, rich_help_panel=group, **more)


def option(name: str, group: str = REPORT, options: Mapping[str, ReportOption] = OPTIONS, **more: Any) -> Any:
    """Makes a typer option from the entry `name` of a table of options."""
    option = options[name]
    more = {"metavar": option.metavar or None, "min": option.minimum, **more}
    return grouped(group, *option.flags, help=option.help, **more)


Format = Annotated[str | None, option("format")]
To = Annotated[Path | None, option("output")]
TextFormat = Annotated[str | None, option("format", options=TEXT_OPTIONS)]
TextTo = Annotated[Path | None, option("output", options=TEXT_OPTIONS)]
PageFormat = Annotated[str | None, option("format", options=PAGE_OPTIONS)]
PageTo = Annotated[Path | None, option("output", options=PAGE_OPTIONS)]
RanksFormat = Annotated[str | None, option("format", options=RANK_OPTIONS)]
RanksTo = Annotated[Path | None, option("output", options=RANK_OPTIONS)]
Width = Annotated[int | None, option("width")]
Story = Annotated[bool, option("story")]
Tensors = Annotated[bool, option("tensors")]
Everything = Annotated[bool, option("everything")]
Timeout = Annotated[float | None, option("timeout", RUN)]
Every = Annotated[str | None, option("every", RUN)]
Steps = Annotated[str | None, option("steps", RUN)]
Training = Annotated[bool, option("training", RUN)]
Reference = Annotated[str, option("reference", RUN, show_default=False)]
Follow = Annotated[bool, option("follow", RUN)]
Attempt = Annotated[bool, option("attempt", RUN)]
Fix = Annotated[bool, option("fix", RUN)]
Write = Annotated[bool, option("write", RUN)]
Baseline = Annotated[Path | None, option("baseline")]
Ranks = Annotated[list[Path], typer.Argument(help="Traces that the ranks of a run saved.", metavar="RANK.json")]
FailOn = Annotated[str, option("fail_on", show_default=False)]
