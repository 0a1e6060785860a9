"""The command line: one function a command, which parses, calls, prints and leaves with an exit code.

Exit codes: 0 nothing wrong; 1 the script failed, an error-level finding, or a claim not as recorded; 2 usage; 130
interrupted. No torch is imported here or in anything that this imports: programs run in a child process.
"""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from tensorlens.cli import commands, guide
from tensorlens.cli.fast_typer import Command, Group
from tensorlens.cli.output import Output
from tensorlens.errors import UsageError

_WrongUse: Any = typer.BadParameter.__base__  # of all that typer says of a command line

app = typer.Typer(
    name="tensorlens",
    help="A borrow checker for autograd: what shares memory, what the graph is, and which line broke it.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

Format = Annotated[
    str | None,
    typer.Option("--format", "-f", help="table, json or markdown.", metavar="FORMAT", show_default="table"),
]
To = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write to FILE, in the form that its suffix names (.json, .md, .txt) unless --format says otherwise; "
        "a script's .json is the trace that `view` reads.",
    ),
]
Width = Annotated[
    int | None,
    typer.Option("--width", metavar="COLUMNS", help="Columns of the report; the terminal's by default.", min=40),
]
Timeout = Annotated[
    float | None,
    typer.Option("--timeout", metavar="SECONDS", help="Stop the script after so many seconds.", min=0.01),
]

_PASS_THROUGH = {"ignore_unknown_options": True, "allow_interspersed_args": False}


def _version(wanted: bool) -> None:
    if wanted:
        commands.show_version()
        raise typer.Exit


@app.callback(cls=Group, invoke_without_command=True)
def tensorlens(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """A borrow checker for autograd: what shares memory, what the graph is, and which line broke it."""
    if context.invoked_subcommand is None:
        raise typer.Exit(guide.show_start())


@app.command(cls=Command)
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
    step: Annotated[bool, typer.Option("--step", help="Go through one lesson line by line.")] = False,
    quiz: Annotated[bool, typer.Option("--quiz", help="Be asked what one lesson does, claim by claim.")] = False,
    restart: Annotated[bool, typer.Option("--restart", help="With --step or --quiz: begin again.")] = False,
    answers: Annotated[
        str | None,
        typer.Option(
            "--answers",
            metavar="FILE|A,B",
            help="With --step or --quiz: what would be typed, one answer a line, or between commas.",
        ),
    ] = None,
    format: Format = None,
    output: To = None,
    width: Width = None,
    timeout: Timeout = None,
) -> None:
    """Run lessons, their claims checked as they run."""
    if step or quiz:
        if (step and quiz) or everything:
            raise UsageError("--step, --quiz and --all do not go together")
        guided = guide.Guided(answers, restart, timeout)
        way: Literal["step", "quiz"] = "step" if step else "quiz"
        raise typer.Exit(guide.go_through(names or [], way, guided, Output(format, output, width)))
    if restart or answers is not None:
        raise UsageError("--restart and --answers go with --step or --quiz")
    raise typer.Exit(commands.run_lessons(names or [], everything, Output(format, output, width), timeout))


@app.command(cls=Command)
def new(lesson: Annotated[Path, typer.Argument(help="The file to write.", metavar="LESSON.py")]) -> None:
    """Write a first lesson of your own, which runs."""
    raise typer.Exit(commands.new_lesson(lesson))


@app.command(cls=Command, context_settings=_PASS_THROUGH)
def explain(
    script: Annotated[str, typer.Argument(help="A script, or - for standard input.", metavar="SCRIPT|-")] = "",
    args: Annotated[list[str] | None, typer.Argument(help="Its own arguments.", metavar="ARGS")] = None,
    module: Annotated[
        str | None, typer.Option("-m", metavar="MODULE", help="Run a module, as `python -m` does.")
    ] = None,
    format: Format = None,
    output: To = None,
    width: Width = None,
    timeout: Timeout = None,
    reference: Annotated[
        bool,
        typer.Option(
            "--reference",
            help="Run it a second time, with copies of what autograd saves, and compare every leaf's gradients. The "
            "second run's output is dropped; files that the script writes are written twice.",
        ),
    ] = False,
) -> None:
    """Run any script and tell which line went wrong, and why.

    What follows the script is the script's own, unless all of it is options of ours; after -- all of it is.
    """
    arguments = [script, *(args or [])] if script else list(args or [])
    raise typer.Exit(commands.explain(module, arguments, Output(format, output, width), timeout, reference))


@app.command(cls=Command)
def compare(
    operands: Annotated[
        list[str] | None,
        typer.Argument(help='Two or more: clone, torch.clone, no_grad, "x[1:]".', metavar="A B"),
    ] = None,
    shape: Annotated[str | None, typer.Option(metavar="SHAPE", help="Shape of x, such as 2,3.")] = None,
    dtype: Annotated[str | None, typer.Option(metavar="DTYPE", help="Its dtype, such as float64.")] = None,
    device: Annotated[str | None, typer.Option(metavar="DEVICE", help="Its device.")] = None,
    requires_grad: Annotated[
        bool | None, typer.Option("--requires-grad/--no-requires-grad", help="Whether x requires grad.")
    ] = None,
    leaf: Annotated[bool | None, typer.Option("--leaf/--non-leaf", help="Whether x is a leaf.")] = None,
    contiguous: Annotated[
        bool | None, typer.Option("--contiguous/--non-contiguous", help="Whether x is contiguous.")
    ] = None,
    view: Annotated[bool | None, typer.Option("--view/--no-view", help="Whether x is a view.")] = None,
    size: Annotated[
        int, typer.Option(metavar="N", help="Elements of the tensor that time and memory are measured on.")
    ] = 1_000_000,
    everything: Annotated[
        bool, typer.Option("--all", help="Show every row: what they agree in, details and costs.")
    ] = False,
    show: Annotated[
        str | None,
        typer.Option(metavar="ROW", help='Print the program behind a row, such as "result written".'),
    ] = None,
    list_probes: Annotated[bool, typer.Option("--list-probes", help="List what is measured.")] = False,
    format: Format = None,
    output: To = None,
    width: Width = None,
) -> None:
    """Put two or more ways of doing something side by side, measured."""
    if list_probes:
        raise typer.Exit(commands.list_probes())
    given = {
        "shape": shape,
        "dtype": dtype,
        "device": device,
        "requires_grad": requires_grad,
        "leaf": leaf,
        "contiguous": contiguous,
        "view": view,
        "size": size,
    }
    shown = commands.Shown(everything, show)
    raise typer.Exit(commands.compare(operands or [], given, Output(format, output, width), shown))


@app.command("list", cls=Command)
def list_(format: Format = None, output: To = None, width: Width = None) -> None:
    """List the bundled lessons, in learning order."""
    raise typer.Exit(guide.list_lessons(Output(format, output, width)))


@app.command(cls=Command)
def errors(
    wanted: Annotated[
        list[str] | None,
        typer.Argument(
            help="A code, a pasted message, or - to read one from standard input.",
            metavar="CODE|MESSAGE|-",
            autocompletion=guide.codes,
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="List the rare ones too.")] = False,
    family: Annotated[str, typer.Option(help="List the codes of a family, such as hooks.", show_default=False)] = "",
    format: Format = None,
    output: To = None,
    width: Width = None,
) -> None:
    """List what autograd can say, or explain one error.

    A code (leaf-modified-inplace) shows its page; a pasted message, with its traceback or without, finds it.
    """
    raise typer.Exit(guide.show_errors(" ".join(wanted or []), Output(format, output, width), everything, family))


@app.command(cls=Command)
def claims(
    article: Annotated[str | None, typer.Argument(help="An article, such as 004.", metavar="ARTICLE")] = None,
    format: Format = None,
    output: To = None,
    width: Width = None,
) -> None:
    """Check every documented statement by running it."""
    raise typer.Exit(commands.check_statements(article, Output(format, output, width)))


@app.command(cls=Command)
def view(
    trace: Annotated[Path, typer.Argument(help="What `explain SCRIPT -o TRACE.json` wrote.", metavar="TRACE.json")],
    format: Format = None,
    output: To = None,
    width: Width = None,
) -> None:
    """Show a saved trace again; needs no torch."""
    raise typer.Exit(commands.view(trace, Output(format, output, width)))


def main() -> None:
    """The entry point: our own errors are one line, a bug of ours says that it is one. Once all is said, Ctrl-C changes
    the exit code no more."""
    gc.disable()  # a command ends before cycles could matter, and keeps nearly all that it makes
    try:
        code = commands.guarded(called)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt:  # between the two lines above
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        code = commands.INTERRUPTED
    with suppress(OSError, ValueError):  # what can't be flushed is for the interpreter to tell
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)  # freeing a long run's records one by one takes a while
    raise SystemExit(code)


def called() -> int:
    """Parse what was typed and run the command; what can't be parsed is shown as text, whatever characters it has."""
    try:
        code: int | None = app(standalone_mode=False)
        return code or 0
    except _WrongUse as error:
        shown = io.StringIO()
        error.show(shown)
        print("\n".join(map(commands.shown, shown.getvalue().rstrip("\n").split("\n"))), file=sys.stderr)
        return 2
