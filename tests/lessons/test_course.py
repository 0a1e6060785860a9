"""The course: the order of the lessons, what they point to, the quiz and its place."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from support.commands import run_command
from support.daily import one_in
from support.warm import Ran, Warm

from tensorlens.analysis.story.line_events import LineEvent
from tensorlens.errors import UsageError
from tensorlens.lessons import article_statements
from tensorlens.lessons.bundled import lessons
from tensorlens.lessons.course import conversation, course_texts, curriculum, lesson_session, prompts, screens
from tensorlens.lessons.course.progress import Place, state_file
from tensorlens.lessons.course.questions import DONT_KNOW, Question, questions, without_comments
from tensorlens.lessons.course.steps import Step, TensorState
from tensorlens.records import error_messages
from tensorlens.records.claim import Claim
from tensorlens.records.model import Trace
from tensorlens.records.source import width
from tensorlens.render.options import RenderOptions
from tensorlens.render.tables import printed

LESSONS = {lesson.name: lesson for lesson in lessons()}
CODES = {entry.code for entry in error_messages.entries()}

STATEMENTS = {statement.id: statement.text for statement in article_statements.STATEMENTS}

Traced = Callable[[str], Trace]


@pytest.fixture(scope="module")
def traced(warm: Warm) -> Traced:
    """The trace of a lesson by its name, run once."""
    return cache(lambda name: warm.traced(LESSONS[name].path)[1])


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def ran(traced: Traced, name: str, way: str = "quiz") -> conversation.Ran:
    source = LESSONS[name].path.read_text(encoding="utf-8")
    place = Place("quiz" if way == "quiz" else "step", name, source)
    return conversation.Ran(name, traced(name), "", place)


def go_through(traced: Traced, name: str, way: str, answers: list[str]) -> None:
    screen = conversation.Screen(RenderOptions(80), lambda text: print(text, end=""))
    lesson_session.go_through(ran(traced, name, way), "quiz" if way == "quiz" else "step", answers, screen)


def asked_of(traced: Traced, name: str) -> tuple[Question, ...]:
    return questions(LESSONS[name].path.read_text(encoding="utf-8"), traced(name).claims)


# --- order and links ------------------------------------------------------------------------------------------------


def test_every_lesson_has_its_place() -> None:
    staged = [name for stage in curriculum.STAGES for name in stage.lessons]
    assert sorted(staged) == sorted(LESSONS), "give each lesson a stage in course/curriculum.py"
    assert curriculum.after("tensor-basics") == "requires_grad_"
    assert [name for name in LESSONS if not curriculum.after(name)] == [staged[-1]]


def linked_commands() -> set[str]:
    """Every command that a lesson, a page or a wrong answer points to."""
    pages = {link for entry in error_messages.entries() for link in entry.see}
    return pages | {link for name in LESSONS for link in curriculum.see_also(name)} | {c for _, c in curriculum._TOPICS}


def test_links_name_existing_things() -> None:
    for link in linked_commands():
        command, _, rest = link.partition(" ")
        assert command in ("run", "errors", "compare"), link
        assert command != "run" or rest in LESSONS, link
        assert command != "errors" or rest in CODES, link


def test_links_to_compare_name_operands_that_torch_has() -> None:
    operands = {
        word.strip('"') for link in linked_commands() if link.startswith("compare ") for word in link.split()[1:]
    }
    assert len(operands) > 10
    code = (
        "import sys; from tensorlens.compare.probe.operands import readings\n"
        "print(*(text for text in sys.argv[1:] if next(readings(text), None) is None))"
    )
    ended = subprocess.run([sys.executable, "-c", code, *operands], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == []


def test_lessons_and_pages_point_to_each_other() -> None:
    for name in LESSONS:
        links = list(curriculum.see_also(name))
        assert links, name
        for link in links:
            if link.startswith("errors "):
                entry = error_messages.entry(link.removeprefix("errors "))
                assert entry is not None
                assert f"run {name}" in entry.see
    assert sum(link.startswith("errors ") for name in LESSONS for link in curriculum.see_also(name)) > 20


# --- questions ------------------------------------------------------------------------------------------------------


def claim(check: str, verdict: str = "holds", line: int = 2, values: tuple[tuple[str, str], ...] = ()) -> Claim:
    return Claim(None, check, line, "holds", "holds" if verdict == "holds" else "refuted", "", values)


def question(check: str, verdict: str = "holds", values: tuple[tuple[str, str], ...] = ()) -> Question:
    (found,) = questions(f"a = 1\n#: {check}\n", [claim(check, verdict, 2, values)])
    return found


def test_an_equality_with_a_value_asks_for_the_value() -> None:
    found = question("a.grad.tolist() == [2.0, 2.0]", values=(("a.grad.tolist()", "[2.0, 2.0]"),))
    assert found.prompt.endswith("a.grad = ?")
    assert found.is_right(found.read("[2, 2]"))
    assert found.is_right("(2.0, 2.001)")
    assert not found.is_right("[2, 3]")
    assert not found.is_right("2")
    assert not found.is_right(DONT_KNOW)
    with pytest.raises(ValueError, match="write a Python value"):
        found.read("two")


def test_a_wrong_equality_asks_for_the_value_that_was_seen() -> None:
    found = question("a._version == 0", "refuted", (("a._version", "3"),))
    assert found.is_right(found.read(" 3 "))
    assert not found.is_right("0")


def test_several_values_are_asked_for_together() -> None:
    check = "a.grad.tolist() == [2.0] and b.grad is None"
    found = question(check, values=(("a.grad.tolist()", "[2.0]"), ("b.grad", "None")))
    assert found.prompt.splitlines() == ["which values, with a comma between them?", "a.grad, b.grad = ?"]
    assert found.is_right(found.read("[2], None"))
    assert not found.is_right(found.read("None, [2]"))
    with pytest.raises(ValueError, match="write 2 values with a comma between them"):
        found.read("[2]")
    assert question("a.tolist() == [2.0] and b.is_leaf").kind == "verdict"
    assert question(check, "refuted", values=(("a.grad.tolist()", "[3.0]"),)).kind == "verdict"


def test_what_takes_a_calculator_is_not_asked_for() -> None:
    assert question("a.tolist() == [0.1779, 2.0]", values=(("a.tolist()", "[0.1779, 2.0]"),)).kind == "verdict"
    assert question("a.tolist() == [0.5, 2.0]", values=(("a.tolist()", "[0.5, 2.0]"),)).kind == "value"


def test_a_raised_exception_asks_how_the_line_ends() -> None:
    found = question("raises RuntimeError: some text")
    assert (found.kind, found.answer) == ("ending", "error")
    assert "RuntimeError" not in found.prompt
    assert found.read("E") == "error"
    with pytest.raises(ValueError, match="write runs or error"):
        found.read("perhaps")


@pytest.mark.parametrize("verdict", ["holds", "refuted"])
@pytest.mark.parametrize("check", ["a.grad is None", "not a.requires_grad", "a.is_leaf", "a in b", "a and b"])
def test_an_answer_is_right_whichever_way_round_it_is_asked(check: str, verdict: str) -> None:
    source, other = f"a = 1\n#: {check}\n", f"a = 1\n\n\n\n\n#: {check}\n"
    for text, line in ((source, 2), (other, 6)):
        (found,) = questions(text, [claim(check, verdict, line)])
        turned = found.text != check
        assert found.is_right("holds") == ((verdict == "holds") != turned)
        assert found.is_right(found.read("n")) == ((verdict == "refuted") != turned)


def test_not_all_right_answers_are_holds(traced: Traced) -> None:
    answers = [each.answer for name in LESSONS for each in asked_of(traced, name)]
    verdicts = [answer for answer in answers if answer in ("holds", "refuted")]
    assert len(answers) > 100
    assert verdicts.count("refuted") > len(verdicts) / 4
    assert len(answers) - len(verdicts) > len(answers) / 5


def test_what_says_the_answer_is_not_shown() -> None:
    source = '"""Title: it fails"""\na = 1  # one\n#: a == 1\nb = "# no comment"\n    # c\n'
    assert without_comments(source) == ("", "a = 1", "", 'b = "# no comment"', "", "")


# --- the quiz -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", one_in(5, LESSONS))
def test_a_quiz_gives_nothing_away_and_knows_the_answers(
    name: str, traced: Traced, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = asked_of(traced, name)
    source = LESSONS[name].path.read_text(encoding="utf-8")
    go_through(traced, name, "quiz", [each.answer for each in asked])
    shown = capsys.readouterr().out
    assert f"\n{len(asked)} of {len(asked)} right\n" in shown
    before, _, end = shown.partition(f"\n{len(asked)} of {len(asked)} right\n")
    assert LESSONS[name].title.split()[-1] in end
    comments = re.findall(r"  # (.*)$", source, re.MULTILINE)
    assert not [text for text in ["#:", *comments, LESSONS[name].teaches[:40]] if text in before]
    assert "saved: " not in before
    talk = re.split(r"^\d+ of \d+  ", before, flags=re.MULTILINE)[1:]
    assert len(talk) == len(asked)
    for said, question, following in zip(talk, asked, asked[1:], strict=False):
        assert "seen: " not in said or question.last != following.last
    for number, question in enumerate(asked):
        ending = question.kind == "ending" and STATEMENTS.get(question.claim.id or "")
        assert not ending or ending not in " ".join("".join(talk[:number]).split())


def test_a_quiz_counts_and_says_what_to_read(traced: Traced, capsys: pytest.CaptureFixture[str]) -> None:
    go_through(traced, "detach-write", "quiz", ["0", "[1, 1, 1]", "?", "nonsense", "runs"])
    shown = capsys.readouterr().out
    assert "\n1 of 4 right\n" in shown
    assert shown.count("write runs or error (r or e)") == 1
    assert "line 21: out.sum().backward() raises an error; you wrote runs\n" in shown
    assert "  tensorlens errors saved-tensor-modified-inplace    lines 18, 21\n" in shown
    assert "  tensorlens errors detach-shares-memory\n" in shown.partition("\ncontinue with\n")[2]
    assert "  tensorlens errors saved-tensor-modified-inplace\n" not in shown, "named already"
    assert json.loads(state_file().read_text())["quiz"] == {}


def test_a_quiz_goes_on_where_it_was_left(traced: Traced, capsys: pytest.CaptureFixture[str]) -> None:
    go_through(traced, "detach-write", "quiz", ["0", "9"])
    assert "1 of 2 right so far, 2 left" in capsys.readouterr().out
    assert list(json.loads(state_file().read_text())["quiz"]) == ["detach-write"]
    go_through(traced, "detach-write", "quiz", ["q"])
    shown = capsys.readouterr().out
    assert "continuing at question 3; 1 of 2 right; --restart starts again\n" in shown
    assert "1 of 2 right so far" in shown
    changed = Place("quiz", "detach-write", "a = 1\n")
    assert changed.load() == []


def test_a_quiz_shows_the_whole_of_a_long_line(traced: Traced, capsys: pytest.CaptureFixture[str]) -> None:
    go_through(traced, "copy_", "quiz", ["?"] * 20)
    shown = capsys.readouterr().out
    assert "copy_(torch.tensor([1.5, 2.5, 3.5])) " in " ".join(shown.split())


@pytest.mark.parametrize("color", [False, True])
def test_data_in_a_step_is_shown_and_keeps_its_columns(color: bool) -> None:
    evil = "[bold]中文[/] \x1b[41m\u202e"
    states = tuple(TensorState(name, "#1", "yes", evil, "0", "None") for name in (evil, "x", "模型.weight" * 9))
    claim = Claim(None, evil, 3, "holds", "holds", evil, ((evil, evil),))
    step = Step(2, 3, (LineEvent(evil, evil, "#1", "error", (evil,)),), states, (claim,))
    source = screens.SourceLines(["", f"y = {evil}", "z"], 1, 3, range(2, 3))
    text = printed([source, *screens.step_parts(step, (), RenderOptions())], 80, color)
    assert text.count("[bold]中文[/]") >= 8
    assert "\x1b[41m" not in text
    assert "\u202e" not in text
    lines = re.sub(r"\x1b\[[\d;]*m", "", text).splitlines()
    assert max(map(width, lines)) <= 80
    begun = [line[: line.index("#1")] for line in lines if re.match(r"\+ .*#1", line)]
    assert len(begun) == 3
    assert len(set(map(width, begun))) == 1


def test_wrong_answers_name_each_command_once(traced: Traced, capsys: pytest.CaptureFixture[str]) -> None:
    go_through(traced, "detach", "quiz", ["?"] * 20)
    to_read = (
        capsys.readouterr().out.partition("\nto read about the wrong answers\n")[2].partition("\n\n")[0].splitlines()
    )
    assert to_read[0] == "  tensorlens errors element-does-not-require-grad    line 41"
    assert len(to_read) == len({line.partition("    ")[0] for line in to_read}) == 4


def test_added_gradients_are_read_about_where_they_were_added() -> None:
    page = "errors gradient-accumulates-without-zero-grad"
    assert page in curriculum.to_read("clone", "a.grad.tolist() == [5.0]", added=True)
    assert page not in curriculum.to_read("clone", "a.grad.tolist() == [2.0]", added=False)
    assert page not in curriculum.to_read("clone", "b.is_leaf", added=True)
    assert curriculum.to_read("sigmoid", "a.grad is None") == ["errors none-grad-attribute"]


def test_the_words_are_explained(traced: Traced, capsys: pytest.CaptureFixture[str]) -> None:
    for stage in curriculum.STAGES[:3]:
        assert course_texts.of_lesson(stage.lessons[0])
        assert not course_texts.of_lesson(stage.lessons[1])
    go_through(traced, "detach-write", "step", ["w", "q"])
    shown = capsys.readouterr().out
    assert all(f"\n{word}: " in shown for word, _ in course_texts.all_terms())
    assert shown.count("Enter next, b back, 1-") == 2
    go_through(traced, "detach-write", "quiz", ["w", "0", "q"])
    shown = capsys.readouterr().out
    assert "\nversion: " in shown
    assert "1 of 1 right so far" in shown


def test_ctrl_c_ends_a_quiz_with_the_count(
    traced: Traced, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter(["0"])

    def ask(self: prompts.Prompter, prompt: str, read: Callable[[str], str]) -> str:
        answer = next(answers, None)
        if answer is None:
            raise KeyboardInterrupt
        return read(answer)

    monkeypatch.setattr(prompts.Prompter, "ask", ask)
    with pytest.raises(KeyboardInterrupt):
        go_through(traced, "detach-write", "quiz", [])
    assert "1 of 1 right so far, 3 left" in capsys.readouterr().out


def test_nothing_to_ask(traced: Traced) -> None:
    place = Place("quiz", "mine.py", "a = 1\n")
    empty = conversation.Ran("mine.py", traced("sigmoid"), "", place)
    with pytest.raises(UsageError, match=r"mine\.py has no claims to ask about"):
        lesson_session.go_through(empty, "quiz", [], conversation.Screen(RenderOptions(80), print))


# --- step by step ---------------------------------------------------------------------------------------------------


def test_steps_are_walked_forth_and_back(traced: Traced, capsys: pytest.CaptureFixture[str]) -> None:
    go_through(traced, "detach-write", "step", ["", "b", "4", "99", "q"])
    shown = capsys.readouterr().out
    assert re.findall(r"^step (\d+) of 7", shown, re.MULTILINE) == ["1", "2", "1", "4"]
    assert "press Enter, or write b, w, q or a number from 1 to 7\n" in shown
    go_through(traced, "detach-write", "step", ["", "", ""])
    shown = capsys.readouterr().out
    assert "continuing at step 4" in shown
    assert "stopped at step 7 of 7" in shown
    go_through(traced, "detach-write", "step", [""])
    assert "the script ended with RuntimeError" in capsys.readouterr().out
    assert json.loads(state_file().read_text())["step"] == {}


def test_a_step_shows_what_it_changed(traced: Traced, capsys: pytest.CaptureFixture[str]) -> None:
    go_through(traced, "detach-write", "step", ["4", "q"])
    shown = capsys.readouterr().out.partition("step 4 of 7, line 16")[2]
    assert "   14  c = out.detach()\n" in shown
    assert ">  16  c.zero_()\n" in shown
    assert "c  #2  changed in place, v0 -> v1; out changes too" in shown
    assert re.search(r"^\*  out +#2 ", shown, re.MULTILINE)
    assert re.search(r"^   a +#1 ", shown, re.MULTILINE)
    assert "out, c share the memory #2" in shown


# --- the place ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": "tensorlens.progress", "quiz": [1]}', "\0"])
def test_a_damaged_file_is_begun_anew(text: str) -> None:
    place = Place("quiz", "detach", "a = 1\n")
    state_file().parent.mkdir(parents=True)
    state_file().write_text(text)
    assert place.load() == []
    assert place.save(["h"])
    assert place.load() == ["h"]
    assert Place("step", "detach", "a = 1\n").load() == []
    assert place.save([])
    assert place.load() == []


def test_a_place_that_can_not_be_kept_is_said_once(
    traced: Traced, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    go_through(traced, "detach-write", "quiz", ["0", "0", "0", "r"])
    assert capsys.readouterr().out.count("can't be saved") == 1


def test_the_state_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert state_file() == tmp_path / ".local/state/tensorlens/progress.json"


# --- the command ----------------------------------------------------------------------------------------------------


def command(*arguments: str, text: str = "", cwd: Path | None = None) -> Ran:
    return run_command(*arguments, text=text, cwd=cwd, COLUMNS="80", LINES="50", NO_COLOR="1")


def test_a_quiz_from_a_file_of_answers(tmp_path: Path) -> None:
    (tmp_path / "answers.txt").write_text("0\n[0, 0, 0]\n")
    ended = command("run", "detach-write", "--quiz", "--answers", str(tmp_path / "answers.txt"))
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.endswith("\n2 of 2 right so far, 2 left; the same command continues there\n")
    again = command("run", "detach-write", "--quiz", text="1\nerror\n")
    assert "continuing at question 3" in again.stdout
    assert "\n4 of 4 right\n" in again.stdout


def test_a_reader_that_leaves() -> None:
    line = f"{sys.executable} -m tensorlens run sigmoid --step | head -n 1"
    ended = subprocess.run(line, shell=True, capture_output=True, text=True, timeout=120, check=False)
    assert (ended.stdout.startswith("sigmoid   "), ended.stderr) == (True, "")


def test_a_lesson_of_ones_own_without_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import torch\nprint('hello')\nx = torch.ones(2)\n#: x.sum() == 2\n")
    ended = command("run", "mine.py", "--step", cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert re.findall(r"^step (\d+) of 2", ended.stdout, re.MULTILINE) == ["1", "2"]
    assert ended.stdout.count("hello\n") == 1
    assert "\x1b" not in ended.stdout


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (["--quiz"], "--quiz takes the name of one lesson"),
        (["detach", "clone", "--step"], "--step takes the name of one lesson"),
        (["detach", "--step", "--quiz"], "do not go together"),
        (["--all", "--quiz"], "do not go together"),
        (["detach", "--answers", "h"], "--restart and --answers go with --step or --quiz"),
        (["detach", "--quiz", "-o", "x.json"], "--format and -o do not go with it"),
    ],
)
def test_wrong_use_is_one_line(arguments: list[str], answer: str) -> None:
    ended = command("run", *arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("tensorlens: ")
    assert answer in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
