"""Writes, asks and saves progress: what `--step` and `--quiz` have in common. Imports no torch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.text import Text

from tensorlens.lessons.course import course_texts, curriculum
from tensorlens.lessons.course.progress import Place
from tensorlens.lessons.course.prompts import Prompter
from tensorlens.records.model import Trace
from tensorlens.records.source import lines_of
from tensorlens.render.options import RenderOptions
from tensorlens.render.report.headline import docstring_lines
from tensorlens.render.safe_text import safe
from tensorlens.render.tables import Cell, printed


@dataclass(frozen=True, slots=True)
class Ran:
    """A lesson that was run: its name as it was typed, its trace, its output, and where its progress is saved."""

    name: str
    trace: Trace
    output: str
    place: Place

    @property
    def lines(self) -> tuple[str, ...]:
        return lines_of(self.place.source)

    @property
    def first(self) -> int:
        """Returns the number of the first line below the docstring."""
        docstring = docstring_lines(self.trace)
        return docstring.stop if docstring else 1


@dataclass(frozen=True, slots=True)
class Screen:
    """The output of a session: a function that writes, and the options for drawing."""

    options: RenderOptions
    write: Callable[[str], None]


class Conversation:
    """Shows a lesson to a user; `--step` and `--quiz` are its subclasses."""

    def __init__(self, ran: Ran, screen: Screen) -> None:
        self.ran = ran
        self.options = screen.options
        self._write = screen.write
        self._warned_unsaved = False

    def write(self, *parts: RenderableType) -> None:
        """Writes the parts one below the other."""
        if parts:
            self._write(printed([Group(*parts)], self.options.width, self.options.color))

    def say(self, text: str, style: str = "plain") -> None:
        """Writes a paragraph."""
        self.write(Cell(safe(text), style, hang=4))

    def skip_line(self) -> None:
        """Writes an empty line."""
        self.write(Text())

    def save(self, answers: Sequence[str]) -> None:
        """Saves the progress; warns once if that is not possible."""
        if not self.ran.place.save(answers) and not self._warned_unsaved:
            self._warned_unsaved = True
            self.say("(your progress can't be saved: the state directory is not writable)", "quiet")

    def write_paragraphs(self, texts: Iterable[str]) -> None:
        """Writes the paragraphs of the docstring."""
        for text in texts:
            if text:
                self.write(Text(), Cell(safe(text)))

    def explain(self, terms: Sequence[tuple[str, str]]) -> None:
        """Writes terms and their meanings, one per line."""
        if terms:
            self.skip_line()
        for word, meaning in terms:
            self.write(Cell(Text.assemble((f"{word}: ", "name"), safe(meaning)), hang=4))

    def ask(self, prompter: Prompter, prompt: str, read: Callable[[str], str]) -> str:
        """Returns an answer; `w` explains the terms and asks again."""
        while (
            answer := prompter.ask(prompt, lambda typed: "w" if typed.strip().lower() == "w" else read(typed))
        ) == "w":
            self.explain(course_texts.all_terms())
            self.skip_line()
        return answer

    def see_also(self, way: str, named: Collection[str] = ()) -> None:
        """Writes the commands to continue with, except those in `named`, which are on the screen already."""
        next_lesson = curriculum.after(self.ran.name)
        commands = [f"tensorlens {command}" for command in curriculum.see_also(self.ran.name) if command not in named]
        commands += [f"tensorlens run {next_lesson} --{way}    the next lesson"] if next_lesson else []
        if commands:
            self.write(Text(), Text("continue with", "heading"))
            self.write(*(Cell("  " + safe(command), hang=4) for command in commands))
