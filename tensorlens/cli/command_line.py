"""Parses the command line: one function per command, which exits with the code that `commands` or `guide` returns.

No module that is imported here imports torch: scripts run in a child process. `exit_codes` defines the exit codes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from tensorlens.cli import commands, guide
from tensorlens.cli.fast_typer import Command, Group
from tensorlens.cli.option_types import (
    COURSE,
    INPUT,
    LEARN,
    REPORT,
    YOUR_CODE,
    Attempt,
    Baseline,
    Every,
    Everything,
    FailOn,
    Fix,
    Follow,
    Format,
    PageFormat,
    PageTo,
    Ranks,
    RanksFormat,
    RanksTo,
    Reference,
    Steps,
    Story,
    Tensors,
    TextFormat,
    TextTo,
    Timeout,
    To,
    Training,
    Width,
    Write,
    grouped,
    option,
)
from tensorlens.cli.output import Output
from tensorlens.cli.report_options import WHY_OPTIONS
from tensorlens.cli.trailing_options import TrailingOptions
from tensorlens.errors import UsageError
from tensorlens.lessons.course.course_options import CourseOptions
from tensorlens.render import FORMS, PAGE_FORMS

WrongUse: Any = typer.BadParameter.__base__  # the base class of typer's errors about the command line

app = typer.Typer(
    name="tensorlens",
    help="A borrow checker for autograd: what shares memory, what the graph is, and which line broke it.",
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)

_PASS_THROUGH = {"ignore_unknown_options": True, "allow_interspersed_args": False}


def _show_version(is_given: bool) -> None:
    if is_given:
        commands.show_version()
        raise typer.Exit


@app.callback(cls=Group, invoke_without_command=True)
def tensorlens(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """A borrow checker for autograd: what shares memory, what the graph is, and which line broke it."""
    if context.invoked_subcommand is None:
        raise typer.Exit(guide.show_start())


@app.command(cls=Command, rich_help_panel=YOUR_CODE, context_settings=_PASS_THROUGH)
def explain(
    script: Annotated[str, typer.Argument(help="A script, or - for standard input.", metavar="SCRIPT|-")] = "",
    args: Annotated[list[str] | None, typer.Argument(help="Its own arguments.", metavar="ARGS")] = None,
    module: Annotated[
        str | None, typer.Option("-m", metavar="MODULE", help="Run a module, as `python -m` does.")
    ] = None,
    format: Format = None,
    output: To = None,
    width: Width = None,
    story: Story = False,
    tensors: Tensors = False,
    everything: Everything = False,
    timeout: Timeout = None,
    every: Every = None,
    steps: Steps = None,
    training: Training = False,
    follow: Follow = False,
    reference: Reference = "",
    attempt: Attempt = False,
    fix: Fix = False,
    write: Write = False,
    baseline: Baseline = None,
    fail_on: FailOn = "",
) -> None:
    """Run any script and say which line went wrong, and why.

    The words after the script are its own arguments, unless all of them are options listed below. After --, they
    always are.
    """
    arguments = [script, *(args or [])] if script else list(args or [])
    shown = Output(format, output, width, story or everything, tensors or everything)
    runs = (timeout, reference, attempt, fix, write, every, steps, training, baseline, fail_on, follow)
    raise typer.Exit(commands.explain(module, arguments, shown, commands.RunSettings(*runs)))


@app.command(cls=Command, rich_help_panel=YOUR_CODE, context_settings=_PASS_THROUGH)
def why(
    name: Annotated[
        str, typer.Argument(help="A tensor as the script writes it: model.fc.weight, x.grad, batch[0].", metavar="NAME")
    ] = "",
    words: Annotated[
        list[str] | None,
        typer.Argument(
            help="A script and its arguments, or a file that `explain SCRIPT -o TRACE.json` wrote.",
            metavar="SCRIPT|TRACE.json",
        ),
    ] = None,
    module: Annotated[
        str | None, typer.Option("-m", metavar="MODULE", help="Run a module, as `python -m` does.")
    ] = None,
    at: Annotated[str, option("at", options=WHY_OPTIONS, show_default=False)] = "",
    writes: Annotated[bool, option("writes", options=WHY_OPTIONS)] = False,
    format: Format = None,
    output: Annotated[Path | None, option("output", options=WHY_OPTIONS)] = None,
    width: Width = None,
    timeout: Timeout = None,
) -> None:
    """Answer one question: why is the tensor NAME, or its gradient, as it is?

    A script is run as `explain --training` does. The name of a module lists its tensors.
    """
    from tensorlens.cli import question

    given = TrailingOptions(format=format, output=output, width=width, timeout=timeout, at=at, writes=writes)
    raise typer.Exit(question.why(name, module, words or [], given))


@app.command(cls=Command, rich_help_panel=YOUR_CODE)
def view(
    trace: Annotated[
        Path, typer.Argument(help="A file that `explain SCRIPT -o TRACE.json` wrote.", metavar="TRACE.json")
    ],
    format: Format = None,
    output: To = None,
    width: Width = None,
    story: Story = False,
    tensors: Tensors = False,
    everything: Everything = False,
    baseline: Baseline = None,
    fail_on: FailOn = "",
) -> None:
    """Show a saved trace again; needs no torch."""
    shown = Output(format, output, width, story or everything, tensors or everything)
    raise typer.Exit(commands.view(trace, shown, commands.RunSettings(baseline=baseline, fail_on=fail_on)))


@app.command(cls=Command, rich_help_panel=YOUR_CODE)
def merge(traces: Ranks, format: RanksFormat = None, output: RanksTo = None, width: Width = None) -> None:
    """Merge the saved traces of the ranks of a distributed run into one report, or into one file."""
    raise typer.Exit(commands.merge(traces, Output(format, output, width, forms=PAGE_FORMS)))


@app.command("list", cls=Command, rich_help_panel=LEARN)
def list_(format: TextFormat = None, output: TextTo = None, width: Width = None) -> None:
    """List the bundled lessons, in learning order."""
    raise typer.Exit(guide.list_lessons(Output(format, output, width, forms=FORMS)))


@app.command(cls=Command, rich_help_panel=LEARN)
def run(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Lessons by name, or paths to your own.",
            metavar="NAME|PATH",
            autocompletion=guide.lesson_names,
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Run every bundled lesson.")] = False,
    step: Annotated[bool, grouped(COURSE, "--step", help="Go through one lesson line by line.")] = False,
    quiz: Annotated[bool, grouped(COURSE, "--quiz", help="Take a quiz about one lesson, claim by claim.")] = False,
    restart: Annotated[bool, grouped(COURSE, "--restart", help="With --step or --quiz: start again.")] = False,
    answers: Annotated[
        str | None,
        grouped(
            COURSE,
            "--answers",
            metavar="FILE|A,B",
            help="With --step or --quiz: the answers, one per line of FILE, or between commas.",
        ),
    ] = None,
    format: Format = None,
    output: To = None,
    width: Width = None,
    timeout: Timeout = None,
) -> None:
    """Run lessons and check their claims."""
    if step or quiz:
        if (step and quiz) or everything:
            raise UsageError("--step, --quiz and --all do not go together")
        way: Literal["step", "quiz"] = "step" if step else "quiz"
        options = CourseOptions(answers, restart, timeout)
        raise typer.Exit(guide.go_through(names or [], way, options, Output(format, output, width, forms=FORMS)))
    if restart or answers is not None:
        raise UsageError("--restart and --answers go with --step or --quiz")
    raise typer.Exit(commands.run_lessons(names or [], everything, Output(format, output, width), timeout))


@app.command(cls=Command, rich_help_panel=LEARN)
def compare(
    operands: Annotated[
        list[str] | None,
        typer.Argument(help='Two or more: clone, torch.clone, no_grad, "x[1:]".', metavar="A B"),
    ] = None,
    shape: Annotated[str | None, grouped(INPUT, metavar="SHAPE", help="Shape of x, such as 2,3.")] = None,
    dtype: Annotated[str | None, grouped(INPUT, metavar="DTYPE", help="Its dtype, such as float64.")] = None,
    device: Annotated[str | None, grouped(INPUT, metavar="DEVICE", help="Its device.")] = None,
    requires_grad: Annotated[
        bool | None,
        grouped(INPUT, "--requires-grad/--no-requires-grad", help="Whether x requires grad."),
    ] = None,
    leaf: Annotated[bool | None, grouped(INPUT, "--leaf/--non-leaf", help="Whether x is a leaf.")] = None,
    contiguous: Annotated[
        bool | None,
        grouped(INPUT, "--contiguous/--non-contiguous", help="Whether x is contiguous."),
    ] = None,
    view: Annotated[bool | None, grouped(INPUT, "--view/--no-view", help="Whether x is a view.")] = None,
    size: Annotated[
        int,
        grouped(INPUT, metavar="N", help="Elements of the tensor that time and memory are measured on."),
    ] = 1_000_000,
    everything: Annotated[
        bool,
        grouped(REPORT, "--all", help="Show every row: also where they agree, details and costs."),
    ] = False,
    show: Annotated[
        str | None,
        grouped(REPORT, metavar="ROW", help='Print the program behind a row, such as "result written".'),
    ] = None,
    list_probes: Annotated[bool, grouped(REPORT, "--list-probes", help="List the measurements.")] = False,
    format: PageFormat = None,
    output: PageTo = None,
    width: Width = None,
) -> None:
    """Compare two or more operations, measured side by side."""
    if list_probes:
        raise typer.Exit(commands.list_probes(Output(format, output, width, forms=FORMS)))
    settings = {
        "shape": shape,
        "dtype": dtype,
        "device": device,
        "requires_grad": requires_grad,
        "leaf": leaf,
        "contiguous": contiguous,
        "view": view,
        "size": size,
    }
    parts = commands.ComparisonParts(everything, show)
    raise typer.Exit(commands.compare(operands or [], settings, Output(format, output, width, forms=PAGE_FORMS), parts))


@app.command(cls=Command, rich_help_panel=LEARN)
def errors(
    query: Annotated[
        list[str] | None,
        typer.Argument(
            help="A code, a pasted message, or - to read one from standard input.",
            metavar="CODE|MESSAGE|-",
            autocompletion=guide.codes,
        ),
    ] = None,
    everything: Annotated[bool, grouped(REPORT, "--all", help="List the rare ones too.")] = False,
    family: Annotated[
        str,
        grouped(REPORT, help="List the codes of a family, such as hooks.", show_default=False),
    ] = "",
    format: TextFormat = None,
    output: TextTo = None,
    width: Width = None,
) -> None:
    """List autograd's errors, or explain one.

    A code (leaf-modified-inplace) shows its page. A pasted message, with or without its traceback, finds its page.
    """
    raise typer.Exit(
        guide.show_errors(" ".join(query or []), Output(format, output, width, forms=FORMS), everything, family)
    )


@app.command(cls=Command, rich_help_panel=LEARN)
def claims(
    article: Annotated[str | None, typer.Argument(help="An article, such as 004.", metavar="ARTICLE")] = None,
    format: TextFormat = None,
    output: TextTo = None,
    width: Width = None,
) -> None:
    """Check every documented statement by running it."""
    raise typer.Exit(commands.check_statements(article, Output(format, output, width, forms=FORMS)))


@app.command(cls=Command, rich_help_panel=LEARN)
def new(lesson: Annotated[Path, typer.Argument(help="The file to write.", metavar="LESSON.py")]) -> None:
    """Write a lesson to start from."""
    raise typer.Exit(commands.new_lesson(lesson))
