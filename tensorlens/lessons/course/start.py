"""Runs the lesson that somebody is about to go through, and reads the answers of a script. Imports no torch."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tensorlens.errors import UsageError
from tensorlens.lessons import bundled as lessons
from tensorlens.lessons.course.conversation import Ran, Screen
from tensorlens.lessons.course.lesson_session import INTERRUPTED, go_through
from tensorlens.lessons.course.progress import Place, Way
from tensorlens.paths import is_file
from tensorlens.render.options import RenderOptions
from tensorlens.render.report.headline import script_source
from tensorlens.runner.launch import RunOptions, Target, run_script

if TYPE_CHECKING:
    from tensorlens.cli.guide import Guided


def begin(name: str, way: Way, how: Guided, options: RenderOptions, write: Callable[[str], None]) -> int:
    """Run a lesson without showing what it prints, and go through it.

    Raises:
        UsageError: there is no such lesson, or no such file of answers.
    """
    path = lessons.find(name)
    given = None if how.answers is None else list(_answers(how.answers))
    with tempfile.TemporaryFile() as output:
        trace = run_script(Target("file", str(path)), RunOptions(how.timeout, claims=True, output=output.fileno()))
        output.seek(0)
        printed = output.read().decode("utf-8", "replace")
    if trace.script.outcome == "interrupted":
        return INTERRUPTED
    bundled = lessons.bundled(name) is not None
    place = Place(way, name if bundled else os.path.abspath(path), script_source(trace))
    if how.restart:
        place.save([])
    return go_through(Ran(name, trace, printed, place), way, given, Screen(options, write))


def _answers(text: str) -> Iterator[str]:
    """The lines of a file, or what stands between the commas of a text that names none; brackets hold together."""
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
