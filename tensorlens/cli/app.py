"""Starts the command line, and ends the process with the exit code.

The commands that need no options run without typer, whose import takes longer than they do: `--version`, `list`,
`errors` and `errors CODE`.
"""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress

from tensorlens.cli import commands, guide
from tensorlens.cli.exit_codes import INTERRUPTED, OK, USAGE, guarded, safe_line
from tensorlens.cli.output import Output

_COMPLETION = "_TENSORLENS_COMPLETE"  # set by a shell that asks what a word can be completed to


def main() -> None:
    """Runs the command line and exits. Once the exit code is known, Ctrl-C does not change it."""
    gc.disable()  # a command ends before reference cycles could fill the memory
    try:
        code = guarded(run_command)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt:  # between the two lines above
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        code = INTERRUPTED
    with suppress(OSError, ValueError):  # the interpreter reports a stream that can't be flushed
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)  # freeing the records of a long run one by one would take a while
    raise SystemExit(code)


def run_command() -> int:
    """Runs the command. Prints a usage error without control characters."""
    if _COMPLETION not in os.environ:
        code = plain_command(sys.argv[1:])
        if code is not None:
            return code
    from tensorlens.cli.command_line import WrongUse, app

    try:
        code = app(standalone_mode=False)
        return code or OK
    except WrongUse as error:
        message = io.StringIO()
        error.show(message)
        print("\n".join(map(safe_line, message.getvalue().rstrip("\n").split("\n"))), file=sys.stderr)
        return USAGE


def plain_command(words: Sequence[str]) -> int | None:
    """Runs a command without options, and returns its exit code; None if there is something to parse."""
    if words == ["--version"]:
        commands.show_version()
        return OK
    if not words:
        return guide.show_start()
    if words == ["list"]:
        return guide.list_lessons(Output())
    if words[0] == "errors" and not any(word.startswith("-") for word in words):
        return guide.show_errors(" ".join(words[1:]), Output())
    return None
