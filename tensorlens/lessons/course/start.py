"""Runs a lesson, then takes the user through it. Imports no torch."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from tensorlens.errors import UsageError
from tensorlens.lessons import bundled as lessons
from tensorlens.lessons.course.conversation import Ran, Screen
from tensorlens.lessons.course.course_options import CourseOptions
from tensorlens.lessons.course.lesson_session import go_through
from tensorlens.lessons.course.progress import Place, Way
from tensorlens.paths import is_file
from tensorlens.render.report.headline import script_source
from tensorlens.runner.launch import RunOptions, Target, run_script


def begin(
    name: str, way: Way, course: CourseOptions, screen: Screen, waiting: Callable[[str], AbstractContextManager[object]]
) -> None:
    """Runs a lesson, keeps its output for later, and takes the user through it.

    While the lesson runs, `waiting` has the terminal; it is called with what to show.

    Raises:
        UsageError: there is no such lesson, or the file of answers can't be read.
        KeyboardInterrupt: Ctrl-C was pressed.
    """
    path = lessons.find(name)
    answers = None if course.answers is None else list(_answers(course.answers))
    with tempfile.TemporaryFile() as output, waiting("running the lesson"):
        trace = run_script(Target("file", str(path)), RunOptions(course.timeout, claims=True, output=output.fileno()))
        output.seek(0)
        printed = output.read().decode("utf-8", "replace")
    if trace.script.outcome == "interrupted":
        raise KeyboardInterrupt
    bundled = lessons.bundled(name) is not None
    place = Place(way, name if bundled else os.path.abspath(path), script_source(trace))
    if course.restart:
        place.save([])
    go_through(Ran(name, trace, printed, place), way, answers, screen)


def _answers(text: str) -> Iterator[str]:
    """Yields the lines of a file, or the parts of a text between commas; commas inside brackets do not count."""
    if is_file(Path(text)):
        try:
            yield from Path(text).read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError as error:
            raise UsageError(f"can't read {text}: {error.strerror}") from None
        return
    depth, answer = 0, ""
    for char in text:
        depth += (char in "([{") - (char in ")]}")
        if char == "," and depth <= 0:
            yield answer.strip()
            answer = ""
        else:
            answer += char
    yield answer.strip()
