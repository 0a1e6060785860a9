"""What both ways of going through a lesson share: writing, asking, keeping the place. Imports no torch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from tensorlens.lessons.course import course_texts, curriculum
from tensorlens.lessons.course.progress import Place
from tensorlens.lessons.course.prompts import Asking
from tensorlens.records.model import Trace
from tensorlens.records.source import lines_of
from tensorlens.render.layout import Line, paragraph, to_text
from tensorlens.render.options import RenderOptions
from tensorlens.render.report.headline import docstring_lines
from tensorlens.render.safe_text import safe


@dataclass(frozen=True, slots=True)
class Ran:
    """A lesson that was run: its name as it is typed, what was recorded, what it printed, where progress is kept."""

    name: str
    trace: Trace
    output: str
    place: Place

    @property
    def lines(self) -> tuple[str, ...]:
        return lines_of(self.place.source)

    @property
    def first(self) -> int:
        """The first line below the docstring."""
        taken = docstring_lines(self.trace)
        return taken.stop if taken else 1


@dataclass(frozen=True, slots=True)
class Screen:
    """Where the talk is shown, and how."""

    options: RenderOptions
    write: Callable[[str], None]


class Talk:
    """What both ways of going through a lesson share: writing, asking, keeping the place."""

    def __init__(self, ran: Ran, screen: Screen) -> None:
        self.ran = ran
        self.options = screen.options
        self._write = screen.write
        self._unkept = False

    def write(self, lines: Iterable[Line]) -> None:
        self._write(to_text(lines, self.options.color))

    def say(self, text: str, style: str = "plain") -> None:
        self.write(paragraph(safe(text), self.options.width, style=style, hang=4))

    def keep(self, answers: Sequence[str]) -> None:
        """Keep the place; say once where that is not possible."""
        if not self.ran.place.save(answers) and not self._unkept:
            self._unkept = True
            self.say("(your place can't be kept: the state directory is not writable)", "quiet")

    def tell(self, texts: Iterable[str]) -> None:
        """Paragraphs of the docstring."""
        for text in texts:
            if text:
                self.write([[], *paragraph(safe(text), self.options.width)])

    def explain(self, what: Iterable[tuple[str, str]]) -> None:
        """Words and what they mean, one to a line."""
        if what:
            self.write([[]])
        for word, meaning in what:
            self.write(paragraph(safe(meaning), self.options.width, [(f"{word}: ", "name")], hang=4))

    def ask(self, asking: Asking, prompt: str, read: Callable[[str], str]) -> str:
        """An answer; `w` explains the words and asks again."""
        while (answer := asking.ask(prompt, lambda typed: "w" if typed.strip().lower() == "w" else read(typed))) == "w":
            self.explain(course_texts.every())
            self.write([[]])
        return answer

    def see_also(self, way: str, named: Collection[str] = ()) -> None:
        """What to go on with, less what has been `named` already."""
        following = curriculum.after(self.ran.name)
        commands = [f"tensorlens {command}" for command in curriculum.see_also(self.ran.name) if command not in named]
        commands += [f"tensorlens run {following} --{way}    the next lesson"] if following else []
        if commands:
            self.write([[], [("go on with", "heading")]])
            self.write([("  " + safe(command), "plain")] for command in commands)
