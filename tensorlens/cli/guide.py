"""The commands that teach: where to start, the list of lessons, the course, the manual's pages."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tensorlens.cli.exit_codes import OK
from tensorlens.cli.output import Output, print_out
from tensorlens.cli.waiting import working
from tensorlens.errors import UsageError

if TYPE_CHECKING:
    from tensorlens.lessons.course.course_options import CourseOptions
    from tensorlens.lessons.course.progress import Way


def show_start() -> int:
    """`tensorlens` without a command: prints where to start."""
    from tensorlens.render.lists import render_start

    print_out(render_start(Output().prose_options()))
    return OK


def list_lessons(output: Output) -> int:
    """`list`: prints the lessons in learning order."""
    from tensorlens.lessons.course.curriculum import course
    from tensorlens.render.lists import render_lessons

    output.write(render_lessons(course(), output.form, output.prose_options()))
    return OK


def show_errors(query: str, output: Output, everything: bool = False, family: str = "") -> int:
    """`errors`, `errors --all`, `errors --family NAME`, `errors CODE`, `errors "message"`, `errors - < log`: prints the
    index or pages."""
    from tensorlens.diagnostics import manual
    from tensorlens.render.lists import render_index, render_pages

    options = output.prose_options()
    if family and query:
        raise UsageError("--family lists a whole family: give it without a code or message")
    if family and family not in manual.families():
        raise UsageError(f"no such family: {family} (the families are {', '.join(manual.families())})")
    if not query:
        output.write(render_index(output.form, options, everything, family))
        return OK
    text = sys.stdin.buffer.read().decode(errors="replace") if query == "-" else query
    if not text.strip():
        raise UsageError("errors of what? Standard input holds no message")
    output.write(render_pages(manual.look_up(text), output.form, options))
    return OK


def go_through(names: Sequence[str], way: Way, options: CourseOptions, output: Output) -> int:
    """`run NAME --step`, `run NAME --quiz`: takes the user through one lesson."""
    from tensorlens.lessons.course.conversation import Screen
    from tensorlens.lessons.course.start import begin

    if len(names) != 1:
        raise UsageError(f"--{way} takes the name of one lesson (tensorlens list shows them)")
    if output.path is not None or output.form != "table":
        raise UsageError(f"--{way} is shown on the terminal: --format and -o do not go with it")
    begin(names[0], way, options, Screen(output.options(), print_out), working)
    return OK


def lesson_names(prefix: str) -> list[str]:
    """Returns the lessons that a shell may complete `run PREFIX` to."""
    from tensorlens.lessons.bundled import lessons

    return [lesson.name for lesson in lessons() if lesson.name.startswith(prefix)]


def codes(prefix: str) -> list[str]:
    """Returns the codes that a shell may complete `errors PREFIX` to."""
    from tensorlens.records.error_messages import entries

    return [entry.code for entry in entries() if entry.code.startswith(prefix)]
