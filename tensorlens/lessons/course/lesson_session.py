"""Going through a lesson with somebody: step by step, or as a quiz. Imports no torch; the lesson runs in a child."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace

from tensorlens.errors import UsageError
from tensorlens.lessons.article_statements import STATEMENTS
from tensorlens.lessons.course import course_texts, curriculum
from tensorlens.lessons.course import screens as shown
from tensorlens.lessons.course.conversation import Ran, Screen, Talk
from tensorlens.lessons.course.progress import Way
from tensorlens.lessons.course.prompts import Asking
from tensorlens.lessons.course.questions import Question, questions, without_comments
from tensorlens.lessons.course.steps import Step, steps
from tensorlens.records.model import Backward
from tensorlens.records.source import one_line
from tensorlens.render.layout import Line
from tensorlens.render.report.headline import docstring, final_failure, outcome, script_file
from tensorlens.render.safe_text import safe

INTERRUPTED = 130
_WINDOW = 10  # lines of the script above a step that are shown with it
_READ = 4  # commands that are named for wrong answers


class Stepping(Talk):
    """`run NAME --step`."""

    def run(self, asking: Asking | None) -> int:
        """Show the steps: all of them where nobody is to be asked, else as they are asked for."""
        found = steps(self.ran.trace, script_file(self.ran.trace))
        title, teaches = docstring(self.ran.trace)
        self.say(f"{self.ran.name}   {len(found)} steps" + (f"   {title}" if title else ""), "heading")
        self.tell(teaches)
        self.explain(course_texts.of_lesson(self.ran.name))
        self.write([[]])
        if found:
            self.say("+ new, * changed by the step", "quiet")
        if asking is None:
            for number in range(len(found)):
                self._show(found, number, whole=False)
            self._end()
            return 0
        return self._interactive(found, asking)

    def _interactive(self, found: Sequence[Step], asking: Asking) -> int:
        kept = self.ran.place.load()
        number = int(kept[0]) if kept and kept[0].isdecimal() and int(kept[0]) < len(found) else 0
        if number:
            self.say(f"going on at step {number + 1}; --restart begins again", "quiet")
        try:
            while number < len(found):
                self._show(found, number, whole=True)
                self.write([[]])
                self.keep([str(number)])
                onward = "Enter next" if number + 1 < len(found) else "Enter ends"
                prompt = f"{onward}, b back, 1-{len(found)} to that step, w words, q quit >"
                typed = self.ask(asking, prompt, lambda typed: _read(typed, len(found)))
                if typed == "q":
                    return 0
                number = number + 1 if not typed else max(number - 1, 0) if typed == "b" else int(typed) - 1
        except (EOFError, KeyboardInterrupt) as ended:
            self.write([[]])
            self.say(f"stopped at step {number + 1} of {len(found)}; the same command goes on there")
            return INTERRUPTED if isinstance(ended, KeyboardInterrupt) else 0
        self.keep([])
        self._end()
        return 0

    def _show(self, found: Sequence[Step], number: int, whole: bool) -> None:
        """One step: `whole` shows the lines above it again."""
        step, size = found[number], self.options.width
        above = found[number - 1].last + 1 if number else self.ran.first
        first = max(self.ran.first, step.last - _WINDOW) if whole else min(above, step.first)
        at = f"line {step.first}" if step.first == step.last else f"lines {step.first} to {step.last}"
        marked = range(step.first, step.last + 1)
        self.write([[], [(f"step {number + 1} of {len(found)}, {at}", "heading")]])
        self.write(shown.source_lines(self.ran.lines, first, step.last, size, marked))
        before = found[number - 1].tensors if number else ()
        self.write(shown.step_lines(step, before, self.options))

    def _end(self) -> None:
        """What the script wrote, how it ended, and what to go on with."""
        self.write([[]])
        if self.ran.output.strip():
            self.write([[("the script prints", "heading")]])
            self.write([("  " + safe(line), "plain")] for line in self.ran.output.rstrip().splitlines())
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


class Quiz(Talk):
    """`run NAME --quiz`."""

    def run(self, asking: Asking) -> int:
        """Ask what has not been answered yet; count, and say what to read again."""
        asked = questions(self.ran.place.source, self.ran.trace.claims)
        answers = _still_readable(asked, self.ran.place.load())
        self.say(f"quiz: {self.ran.name}   {len(asked)} questions", "heading")
        self.say("h holds (it is so), r refuted (it is not so), or the value that is asked for", "quiet")
        self.say("? shows the answer, w explains the words, q quits", "quiet")
        if answers:
            self.say(f"going on at question {len(answers) + 1}; {self._count(asked, answers)}; --restart begins again")
        try:
            while len(answers) < len(asked):
                answer = self._ask(asked, len(answers), asking)
                if answer == "q":
                    return self._stopped(asked, answers)
                answers.append(answer)
                self.keep(answers)
                self._reveal(asked, len(answers) - 1, answer)
        except (EOFError, KeyboardInterrupt) as ended:
            self.write([[]])
            self._stopped(asked, answers)
            return INTERRUPTED if isinstance(ended, KeyboardInterrupt) else 0
        self.keep([])
        self._end(asked, answers)
        return 0

    def _ask(self, asked: Sequence[Question], number: int, asking: Asking) -> str:
        question = asked[number]
        above = max((each.last for each in asked[:number]), default=self.ran.first - 1)
        hidden = without_comments(self.ran.place.source)
        new = shown.source_lines(hidden, above + 1, question.last, self.options.width)
        self.write([[], *([*_squeezed(new), []] if new else [])])
        self.write(shown.question_lines(asked, number, self.options))
        prompt = f"    {question.prompt.rpartition(chr(10))[2]}"
        return self.ask(asking, prompt, lambda typed: "q" if typed == "q" else question.read(typed))

    def _reveal(self, asked: Sequence[Question], number: int, answer: str) -> None:
        """The measured answer; what the lines did once no question about them is left."""
        question = asked[number]
        self.write(shown.answer_lines(asked, number, answer, self.options))
        if any(each.last == question.last for each in asked[number + 1 :]):
            return
        above = max((each.last for each in asked[:number] if each.last < question.last), default=0)
        for step in steps(self.ran.trace, script_file(self.ran.trace)):
            if above < step.last <= question.last:
                facts = [
                    replace(fact, more=tuple(text for text in fact.more if not _tells(text))) for fact in step.facts
                ]
                self.write(shown.fact_lines(facts, self.options.width, f"    line {step.first}: "))

    def _count(self, asked: Sequence[Question], answers: Sequence[str]) -> str:
        right = sum(question.is_right(answer) for question, answer in zip(asked, answers, strict=False))
        return f"{right} of {len(answers)} right"

    def _stopped(self, asked: Sequence[Question], answers: Sequence[str]) -> int:
        left = len(asked) - len(answers)
        self.say(f"{self._count(asked, answers)} so far, {left} left; the same command goes on there", "heading")
        return 0

    def _end(self, asked: Sequence[Question], answers: Sequence[str]) -> None:
        title, teaches = docstring(self.ran.trace)
        self.write([[], [(self._count(asked, answers), "heading")]])
        wrong = [(each, said) for each, said in zip(asked, answers, strict=True) if not each.is_right(said)]
        for question, said in wrong:
            self.write(shown.wrong_lines(question, said, self.options))
        self.tell((title, *teaches))
        self.see_also("quiz", self._read_again(asked, [question for question, _ in wrong]))

    def _read_again(self, asked: Sequence[Question], wrong: Sequence[Question]) -> list[str]:
        """Name what to read about the answers that were wrong, each command once with the lines that it is about."""
        lines: dict[str, list[int]] = {}
        for question in sorted(wrong, key=lambda question: question.kind != "ending"):
            above = max((each.last for each in asked if each.last < question.last), default=0)
            for command in self._to_read(question, above + 1):
                lines.setdefault(command, []).append(question.last)
        if lines:
            self.write([[], [("to read about what was wrong", "heading")]])
        named = list(lines)[:_READ]
        for command in named:
            at = lines[command]
            where = ", ".join(str(line) for line in sorted(set(at)))
            self.say(f"  tensorlens {command}    line{'s' if ', ' in where else ''} {where}")
        return named

    def _to_read(self, question: Question, above: int) -> list[str]:
        """What to read about a question; the lines that belong to it begin with `above`."""
        trace = self.ran.trace
        file = script_file(trace)
        at = {
            site.id
            for site in trace.sites
            if site.span.file == file and site.span.line in range(above, question.last + 1)
        }
        passes = [event for event in trace.events if isinstance(event, Backward) and event.site in at]
        added = any(gradient.before is not None for each in passes for gradient in each.gradients)
        message = " ".join(value for _, value in question.claim.values) if question.kind == "ending" else ""
        return curriculum.to_read(self.ran.name, question.claim.check, message, added)


def _tells(text: str) -> bool:
    """Whether a note on a line gives away that a later backward fails: it is known from that failure only."""
    return text.startswith("saved: ")


def _still_readable(asked: Sequence[Question], answers: Sequence[str]) -> list[str]:
    """Answers that were kept, as far as they answer the questions of today."""
    kept: list[str] = []
    for question, answer in zip(asked, answers, strict=False):
        try:
            kept.append(question.read(answer))
        except ValueError:
            break
    return kept if len(kept) < len(asked) else []


def _squeezed(lines: Sequence[Line]) -> list[Line]:
    """Lines of source without more than one empty line in a row."""
    kept: list[Line] = []
    for line in lines:
        empty = not "".join(text for text, style in line if style == "code").strip()
        if not (empty and kept and kept[-1] == []):
            kept.append([] if empty else line)
    while kept and kept[-1] == []:
        kept.pop()
    return kept


def go_through(ran: Ran, way: Way, answers: Iterable[str] | None, screen: Screen) -> int:
    """Go through a lesson; `answers` are given instead of typed. Without them, and without a terminal to ask at, the
    steps are shown one after the other, and a quiz reads the lines of standard input.

    Raises:
        UsageError: there is nothing to ask about.
    """
    texts = {statement.id: statement.text for statement in STATEMENTS}
    screen = replace(screen, options=replace(screen.options, lesson=True, statements=texts))
    color = screen.options.color
    typed = answers is None and sys.stdin.isatty()
    if way == "step":
        asked = answers is not None or (typed and sys.stdout.isatty())
        return Stepping(ran, screen).run(Asking(answers, color) if asked else None)
    if not questions(ran.place.source, ran.trace.claims):
        raise UsageError(f"{ran.name} has no claims to ask about (lines that begin with #:); --step shows its lines")
    return Quiz(ran, screen).run(Asking(sys.stdin if answers is None and not typed else answers, color))
