"""The commands that guide somebody: where to start, the lessons in order, the course, the manual's pages."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tensorlens.cli.output import Output, print_out
from tensorlens.errors import UsageError

if TYPE_CHECKING:
    from tensorlens.lessons.course.progress import Way

_START = """\
TensorLens runs a PyTorch script and says which tensors share memory, what the
graph is, and which line broke it. Where to start:

  tensorlens run tensor-basics      the first lesson; --step shows it line by
                                    line, --quiz asks before it answers
  tensorlens list                   all lessons, in learning order
  tensorlens explain SCRIPT.py      your own script: which line, and why
  tensorlens compare detach clone   ways of doing something, side by side
  tensorlens errors "MESSAGE"       what an error message means

tensorlens --help lists all commands and options.
"""


def show_start() -> int:
    """`tensorlens` alone: where to begin."""
    print_out(_START)
    return 0


def list_lessons(output: Output) -> int:
    """`list`: the lessons in learning order."""
    from tensorlens.lessons.course.curriculum import course
    from tensorlens.render.lists import render_lessons

    output.write(render_lessons(course(), output.form, output.prose_width))
    return 0


def show_errors(wanted: str, output: Output, everything: bool = False, family: str = "") -> int:
    """`errors`, `errors --all`, `errors --family NAME`, `errors CODE`, `errors "message"`, `errors - < log`."""
    from tensorlens.diagnostics import manual
    from tensorlens.render.lists import render_index, render_pages

    width = output.prose_width
    if family and (wanted or family not in manual.families()):
        raise UsageError(f"--family lists one of {', '.join(manual.families())}, and takes no code")
    if not wanted:
        output.write(render_index(output.form, width, everything, family))
        return 0
    text = sys.stdin.buffer.read().decode(errors="replace") if wanted == "-" else wanted
    if not text.strip():
        raise UsageError("errors of what? Standard input holds no message")
    output.write(render_pages(manual.look_up(text), output.form, width))
    return 0


@dataclass(frozen=True, slots=True)
class Guided:
    """How somebody is taken through a lesson: `answers` in place of what is typed; `restart` from the beginning."""

    answers: str | None = None
    restart: bool = False
    timeout: float | None = None


def go_through(names: Sequence[str], way: Way, how: Guided, output: Output) -> int:
    """`run NAME --step`, `run NAME --quiz`."""
    from tensorlens.lessons.course.start import begin

    if len(names) != 1:
        raise UsageError(f"--{way} takes the name of one lesson (tensorlens list shows them)")
    if output.path is not None or output.form != "table":
        raise UsageError(f"--{way} is shown on the terminal: --format and -o do not go with it")
    return begin(names[0], way, how, output.options(), print_out)


def lesson_names(begun: str) -> list[str]:
    """What the shell may complete `run` with."""
    from tensorlens.lessons.bundled import lessons

    return [lesson.name for lesson in lessons() if lesson.name.startswith(begun)]


def codes(begun: str) -> list[str]:
    """What the shell may complete `errors` with."""
    from tensorlens.records.error_messages import entries

    return [entry.code for entry in entries() if entry.code.startswith(begun)]
