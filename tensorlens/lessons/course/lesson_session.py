"""Takes a user through a lesson, step by step or as a quiz. Imports no torch: the lesson has run in a child process."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace

from rich.text import Text

from tensorlens.analysis.story.line_events import LineEvent
from tensorlens.errors import UsageError
from tensorlens.lessons.article_statements import STATEMENTS
from tensorlens.lessons.course import course_texts, curriculum, screens
from tensorlens.lessons.course.conversation import Conversation, Ran, Screen
from tensorlens.lessons.course.progress import Way
from tensorlens.lessons.course.prompts import Prompter
from tensorlens.lessons.course.questions import Question, questions, without_comments
from tensorlens.lessons.course.steps import Step, steps
from tensorlens.records.model import Backward
from tensorlens.records.source import one_line
from tensorlens.render.report.headline import docstring, final_failure, outcome, script_file
from tensorlens.render.safe_text import safe
from tensorlens.render.tables import Cell

_WINDOW = 10  # lines of the script that are shown above a step
_MAX_COMMANDS = 4  # commands that are named for wrong answers


class Stepping(Conversation):
    """`run NAME --step`: shows each statement with its events and the tensors after it."""

    def run(self, prompter: Prompter | None) -> None:
        """Shows all steps at once, or with a prompter one at a time."""
        lesson_steps = steps(self.ran.trace, script_file(self.ran.trace))
        title, paragraphs = docstring(self.ran.trace)
        self.say(f"{self.ran.name}   {len(lesson_steps)} steps" + (f"   {title}" if title else ""), "heading")
        self.write_paragraphs(paragraphs)
        self.explain(course_texts.of_lesson(self.ran.name))
        self.skip_line()
        if lesson_steps:
            self.say("+ new, * changed by the step", "quiet")
        if prompter is not None:
            self._interactive(lesson_steps, prompter)
            return
        for number in range(len(lesson_steps)):
            self._show(lesson_steps, number, whole=False)
        self._end()

    def _interactive(self, lesson_steps: Sequence[Step], prompter: Prompter) -> None:
        saved = self.ran.place.load()
        total = len(lesson_steps)
        number = int(saved[0]) if saved and saved[0].isdecimal() and int(saved[0]) < total else 0
        if number:
            self.say(f"continuing at step {number + 1}; --restart starts again", "quiet")
        try:
            while number < total:
                self._show(lesson_steps, number, whole=True)
                self.skip_line()
                self.save([str(number)])
                onward = "Enter next" if number + 1 < total else "Enter ends"
                prompt = f"{onward}, b back, 1-{total} to that step, w words, q quit >"
                typed = self.ask(prompter, prompt, lambda typed: _read(typed, total))
                if typed == "q":
                    return
                number = number + 1 if not typed else max(number - 1, 0) if typed == "b" else int(typed) - 1
        except (EOFError, KeyboardInterrupt) as stop:
            self.skip_line()
            self.say(f"stopped at step {number + 1} of {total}; the same command continues there")
            if isinstance(stop, KeyboardInterrupt):
                raise
            return
        self.save([])
        self._end()

    def _show(self, lesson_steps: Sequence[Step], number: int, whole: bool) -> None:
        """Shows one step, with the lines since the step before it, or with `whole` the last lines above it."""
        step = lesson_steps[number]
        above = lesson_steps[number - 1].last + 1 if number else self.ran.first
        first = max(self.ran.first, step.last - _WINDOW) if whole else min(above, step.first)
        at = f"line {step.first}" if step.first == step.last else f"lines {step.first} to {step.last}"
        marked = range(step.first, step.last + 1)
        self.write(Text(), Text(f"step {number + 1} of {len(lesson_steps)}, {at}", "heading"))
        self.write(screens.SourceLines(self.ran.lines, first, step.last, marked))
        before = lesson_steps[number - 1].tensors if number else ()
        self.write(*screens.step_parts(step, before, self.options))

    def _end(self) -> None:
        """Shows the script's output, how it ended, and the commands to continue with."""
        self.skip_line()
        if self.ran.output.strip():
            self.write(Text("the script prints", "heading"))
            self.write(*(Cell("  " + safe(line), hang=4) for line in self.ran.output.rstrip().splitlines()))
        failure = final_failure(self.ran.trace)
        self.say(outcome(self.ran.trace) + (f": {one_line(failure.message, 200)}" if failure else ""), "quiet")
        self.see_also("step")


def _read(typed: str, total: int) -> str:
    text = typed.strip().lower()
    if text in ("", "b", "q"):
        return text
    if text in ("n", "next"):
        return ""
    if text.isdecimal() and 1 <= int(text) <= total:
        return str(int(text))
    raise ValueError(f"press Enter, or write b, w, q or a number from 1 to {total}")


class Quiz(Conversation):
    """`run NAME --quiz`: asks about each claim before showing its answer."""

    def run(self, prompter: Prompter) -> None:
        """Asks the questions that have no answer yet, counts the right answers, and names what to read again."""
        asked = questions(self.ran.place.source, self.ran.trace.claims)
        answers = _still_readable(asked, self.ran.place.load())
        self.say(f"quiz: {self.ran.name}   {len(asked)} questions", "heading")
        self.say("h holds (it is true), r refuted (it is false), or the value that is asked for", "quiet")
        self.say("? shows the answer, w explains the terms, q quits", "quiet")
        if answers:
            self.say(
                f"continuing at question {len(answers) + 1}; {self._count(asked, answers)}; --restart starts again"
            )
        try:
            while len(answers) < len(asked):
                answer = self._ask(asked, len(answers), prompter)
                if answer == "q":
                    self._say_stopped(asked, answers)
                    return
                answers.append(answer)
                self.save(answers)
                self._reveal(asked, len(answers) - 1, answer)
        except (EOFError, KeyboardInterrupt) as stop:
            self.skip_line()
            self._say_stopped(asked, answers)
            if isinstance(stop, KeyboardInterrupt):
                raise
            return
        self.save([])
        self._end(asked, answers)

    def _ask(self, asked: Sequence[Question], number: int, prompter: Prompter) -> str:
        question = asked[number]
        above = max((each.last for each in asked[:number]), default=self.ran.first - 1)
        hidden = without_comments(self.ran.place.source)
        new = screens.SourceLines(hidden, above + 1, question.last, squeezed=True)
        self.skip_line()
        if new.numbers:
            self.write(new, Text())
        self.write(*screens.question_parts(asked, number, self.options))
        prompt = f"    {question.prompt.rpartition(chr(10))[2]}"
        return self.ask(prompter, prompt, lambda typed: "q" if typed == "q" else question.read(typed))

    def _reveal(self, asked: Sequence[Question], number: int, answer: str) -> None:
        """Shows the right answer. After the last question that ends at this line, also shows what the lines did."""
        question = asked[number]
        self.write(*screens.answer_parts(asked, number, answer, self.options))
        if any(each.last == question.last for each in asked[number + 1 :]):
            return
        above = max((each.last for each in asked[:number] if each.last < question.last), default=0)
        for step in steps(self.ran.trace, script_file(self.ran.trace)):
            if above < step.last <= question.last:
                facts = map(_without_hints, step.facts)
                self.write(*screens.fact_parts(facts, f"    line {step.first}: "))

    def _count(self, asked: Sequence[Question], answers: Sequence[str]) -> str:
        right = sum(question.is_right(answer) for question, answer in zip(asked, answers, strict=False))
        return f"{right} of {len(answers)} right"

    def _say_stopped(self, asked: Sequence[Question], answers: Sequence[str]) -> None:
        left = len(asked) - len(answers)
        self.say(f"{self._count(asked, answers)} so far, {left} left; the same command continues there", "heading")

    def _end(self, asked: Sequence[Question], answers: Sequence[str]) -> None:
        title, paragraphs = docstring(self.ran.trace)
        self.write(Text(), Text(self._count(asked, answers), "heading"))
        answered = zip(asked, answers, strict=True)
        wrong = [(question, answer) for question, answer in answered if not question.is_right(answer)]
        for question, answer in wrong:
            self.write(*screens.wrong_parts(question, answer, self.options))
        self.write_paragraphs((title, *paragraphs))
        self.see_also("quiz", self._read_again(asked, [question for question, _ in wrong]))

    def _read_again(self, asked: Sequence[Question], wrong: Sequence[Question]) -> list[str]:
        """Writes and returns the commands to read about wrong answers, each once with the lines that it is about."""
        lines: dict[str, list[int]] = {}
        for question in sorted(wrong, key=lambda question: question.kind != "ending"):
            above = max((each.last for each in asked if each.last < question.last), default=0)
            for command in self._to_read(question, above + 1):
                lines.setdefault(command, []).append(question.last)
        if lines:
            self.write(Text(), Text("to read about the wrong answers", "heading"))
        named = list(lines)[:_MAX_COMMANDS]
        for command in named:
            where = ", ".join(str(line) for line in sorted(set(lines[command])))
            self.say(f"  tensorlens {command}    line{'s' if ', ' in where else ''} {where}")
        return named

    def _to_read(self, question: Question, start: int) -> list[str]:
        """Returns the commands to read about a question. Its lines begin with line `start`."""
        trace = self.ran.trace
        file = script_file(trace)
        sites = {
            site.id
            for site in trace.sites
            if site.span.file == file and site.span.line in range(start, question.last + 1)
        }
        passes = [event for event in trace.events if isinstance(event, Backward) and event.site in sites]
        added = any(gradient.before is not None for each in passes for gradient in each.gradients)
        message = " ".join(value for _, value in question.claim.values) if question.kind == "ending" else ""
        return curriculum.to_read(self.ran.name, question.claim.check, message, added)


def _without_hints(event: LineEvent) -> LineEvent:
    """Removes the notes on saved tensors: they would show that a later backward fails."""
    return replace(event, more=tuple(text for text in event.more if not text.startswith("saved: ")))


def _still_readable(asked: Sequence[Question], answers: Sequence[str]) -> list[str]:
    """Returns the saved answers up to the first that does not fit its question; none if the quiz was finished."""
    readable: list[str] = []
    for question, answer in zip(asked, answers, strict=False):
        try:
            readable.append(question.read(answer))
        except ValueError:
            break
    return readable if len(readable) < len(asked) else []


def go_through(ran: Ran, way: Way, answers: Iterable[str] | None, screen: Screen) -> None:
    """Takes a user through a lesson. If `answers` are given, they take the place of what the user types.

    Without answers and without a terminal, all steps are shown, and a quiz reads the lines of standard input.

    Raises:
        UsageError: the lesson has no claims to ask about.
        KeyboardInterrupt: Ctrl-C was pressed; the progress is saved.
    """
    texts = {statement.id: statement.text for statement in STATEMENTS}
    screen = replace(screen, options=replace(screen.options, lesson=True, statements=texts))
    color = screen.options.color
    is_typed = answers is None and sys.stdin.isatty()
    if way == "step":
        is_asked = answers is not None or (is_typed and sys.stdout.isatty())
        Stepping(ran, screen).run(Prompter(answers, color) if is_asked else None)
        return
    if not questions(ran.place.source, ran.trace.claims):
        raise UsageError(f"{ran.name} has no claims to ask about (lines that begin with #:); --step shows its lines")
    Quiz(ran, screen).run(Prompter(sys.stdin if answers is None and not is_typed else answers, color))
