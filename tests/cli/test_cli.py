"""The commands as a user meets them: output, exit codes, one clear line for bad input, no torch where none is due."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from fuzzing.texts import said_by
from support.commands import run_command, start_command
from support.daily import first_daily
from support.traces import written_alias
from support.warm import Warm

from tensorlens import load
from tensorlens.cli.app import plain_command
from tensorlens.cli.output import Output
from tensorlens.lessons.bundled import lessons
from tensorlens.lessons.course.curriculum import course
from tensorlens.records import trace_file
from tensorlens.records.model import Trace
from tensorlens.records.report import Report
from tensorlens.render.options import RenderOptions

WITHOUT_TORCH = "import sys; sys.modules['torch'] = None; from tensorlens.cli.app import main; main()"

LOADED = """\
import sys
from tensorlens.cli.exit_codes import guarded
from tensorlens.cli.app import run_command
guarded(run_command)
print(*sys.modules, file=sys.stderr)
"""

FAILS = """\
import sys
import torch

print("arguments", sys.argv[1:])
weight = torch.tensor([1.0, 2.0], requires_grad=True)
weight.mul_(2)
"""
FINE = "import torch\nprint(torch.ones(2).sum().item())\n"


def printed(*arguments: str) -> str:
    """Runs a command that starts no program, in this process, and returns what it prints."""
    code, out, err = said_by(list(arguments))
    assert (code, err) == (0, "")
    return out


def bad_input(*arguments: str, cwd: Path | None = None) -> str:
    """The one line that a wrong use gets, in this process."""
    with contextlib.chdir(cwd or "."):
        code, out, err = said_by(list(arguments))
    assert (code, out) == (2, ""), err
    return one_line(err)


def one_line(stderr: str) -> str:
    assert stderr.startswith("tensorlens: ")
    assert len(stderr.splitlines()) == 1
    return stderr


@pytest.mark.parametrize("arguments", [["--version"], ["list"], ["errors", "detach-view-inplace"]])
def test_what_tells_of_no_run_loads_nothing_slow(arguments: list[str]) -> None:
    ended = start_command(*arguments, code=LOADED)
    assert ended.returncode == 0
    assert ended.stdout
    assert not {"torch", "pydantic", "pygments", "tensorlens.records.model"} & set(ended.stderr.split())


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(FAILS, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["list"],
        ["errors"],
        ["errors", "anomaly-nan"],
        ["errors", "--format", "json"],
        ["compare", "--list-probes"],
    ],
)
def test_what_needs_no_torch_imports_none(arguments: list[str]) -> None:
    ended = start_command(*arguments, code=WITHOUT_TORCH)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout
    assert ended.stderr == ""


@pytest.mark.parametrize("words", [[], ["--version"], ["list"], ["errors"], ["errors", "anomaly-nan"], ["errors", "?"]])
def test_a_command_without_options_does_what_it_does_when_it_is_parsed(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = said_by(words)
    monkeypatch.setattr("tensorlens.cli.app.plain_command", lambda words: None)
    assert plain == said_by(words)
    assert "typer" not in start_command(*words, code=LOADED).stderr.split()


@pytest.mark.parametrize("words", [["list", "all"], ["errors", "-"], ["errors", "x", "--all"], ["run"], ["--help"]])
def test_everything_else_is_parsed(words: list[str]) -> None:
    assert plain_command(words) is None


def test_every_command_has_help_that_is_whole_at_80_columns() -> None:
    shown = run_command("--help", COLUMNS="80").stdout
    panel = ""
    groups: dict[str, list[str]] = {}
    for line in shown.splitlines():
        panel = line.strip("╭─╮ ") if line.startswith("╭") else panel
        if named := re.match(r"│ (\w+) +[A-Z]", line):
            groups.setdefault(panel, []).append(named[1])
    assert groups == {
        "Your own code": ["explain", "why", "view", "merge"],
        "Learn": ["list", "run", "compare", "errors", "claims", "new"],
    }
    assert "…" not in shown


@pytest.mark.parametrize("command", [[], ["run"], ["explain"], ["why"], ["compare"], ["errors"], ["view"]])
def test_help_fits_and_has_no_escape_codes_in_a_pipe(command: list[str]) -> None:
    without_color = run_command(*command, "--help", COLUMNS="80", NO_COLOR="1", FORCE_COLOR="1")
    for ended in (without_color, run_command(*command, "--help", COLUMNS="80", GITHUB_ACTIONS="true")):
        shown = ended.stdout
        assert "\x1b" not in shown
        assert max(map(len, shown.splitlines())) <= 80
        assert "│ --help " in shown


def test_help_in_colour_is_the_same_text() -> None:
    shown = run_command("compare", "--help", COLUMNS="90", FORCE_COLOR="1").stdout
    assert "\x1b[" in shown
    assert not re.search(r"\x1b\[(?:\d+;)*3[0347](?:;\d+)*m", shown), "black, yellow, blue or white"
    assert re.sub(r"\x1b\[[\d;]*m", "", shown) == run_command("compare", "--help", COLUMNS="90").stdout


def test_a_terminal_that_knows_only_ascii() -> None:
    for command in (["list"], ["--help"], ["errors", "anomaly-nan"]):
        ended = start_command(*command, PYTHONIOENCODING="ascii", COLUMNS="80")
        assert (ended.returncode, ended.stderr) == (0, "")
        assert ended.stdout.isascii()
        assert "\\u" not in ended.stdout


def test_tensorlens_alone_says_where_to_start() -> None:
    ended = start_command(code=WITHOUT_TORCH)
    assert (ended.returncode, ended.stderr) == (0, "")
    lines = ended.stdout.splitlines()
    assert len(lines) <= 12
    assert max(map(len, lines)) <= 80
    for command in ("run tensor-basics", "list", "explain", "compare", "errors"):
        assert any(line.startswith(f"  tensorlens {command}") for line in lines), command


def test_lessons_are_listed_in_learning_order() -> None:
    lines = printed("list").splitlines()
    names = [line.split()[0] for line in lines if line.startswith("  ") and line[2] != " "]
    assert names == [lesson.name for _, found in course() for lesson in found]
    assert sorted(names) == sorted(lesson.name for lesson in lessons())
    stages = [line.partition("  ")[0] for line in lines if line[:1].isalpha()][2:-2]
    assert stages == ["basics", "memory", "graph", "in place", "training"]
    assert lines[0] == f"Start with: tensorlens run {names[0]}"


def test_long_titles_of_lessons_hang_below_their_column() -> None:
    lines = printed("list", "--width", "60").splitlines()
    assert max(map(len, lines)) <= 60
    hung = [line for line in lines if line.startswith("   ")]
    title = next(line for line in lines if line.startswith("  detach ")).index("detach():")
    assert {len(line) - len(line.lstrip()) for line in hung} == {title}


def test_a_lesson_that_is_to_be_explained() -> None:
    assert one_line(bad_input("explain", "detach")) == (
        "tensorlens: no such file: detach; a lesson has this name: tensorlens run detach\n"
    )
    assert "tensorlens run data_write" in bad_input("explain", "data_write")


def test_page_of_a_pasted_message() -> None:
    page = printed("errors", "RuntimeError: grad can be implicitly created only for scalar outputs")
    assert page.startswith("non-scalar-implicit-grad ")


def test_a_message_on_standard_input_may_be_wrapped() -> None:
    log = "RuntimeError: a view of a\n  leaf Variable that requires grad is being\n  used in an in-place operation."
    page = run_command("errors", "-", text=log).stdout
    assert page.startswith("view-of-leaf-modified-inplace ")


def test_lists_and_pages_as_json() -> None:
    listed = json.loads(printed("list", "-f", "json"))
    assert (listed["format"], listed["version"]) == ("tensorlens.lessons", 1)
    assert "detach" in [lesson["name"] for lesson in listed["lessons"]]
    assert listed["lessons"][0]["stage"] == "basics"
    page = json.loads(printed("errors", "anomaly-nan", "-f", "json"))
    assert page["format"] == "tensorlens.errors"
    assert [entry["code"] for entry in page["errors"]] == ["anomaly-nan"]
    assert "## Fails" in page["errors"][0]["page"]
    assert page["errors"][0]["message"].startswith("Function 'SqrtBackward0' returned nan values")


def test_lists_and_pages_as_markdown(tmp_path: Path) -> None:
    assert run_command("list", "-o", "lessons.md", cwd=tmp_path).stdout == ""
    rows = (tmp_path / "lessons.md").read_text(encoding="utf-8").splitlines()
    assert rows[:2] == ["| Stage | Lesson | Title |", "|---|---|---|"]
    assert printed("errors", "anomaly-nan", "-f", "markdown").startswith("# anomaly-nan\n\n")


def test_a_family_of_errors_is_listed() -> None:
    listed = json.loads(printed("errors", "--family", "optimizers", "-f", "json"))["errors"]
    assert "optimize-nonleaf" in [entry["code"] for entry in listed]
    assert {entry["family"] for entry in listed} == {"optimizers"}
    text = printed("errors", "--family", "optimizers")
    assert all(entry["code"] in text for entry in listed)
    assert "leaf-modified-inplace" not in text
    assert "no such family: optimisers (the families are" in bad_input("errors", "--family", "optimisers")
    assert "without a code" in bad_input("errors", "--family", "optimizers", "leaf-modified-inplace")


def test_pages_keep_to_the_width() -> None:
    for width in (60, 100):
        lines = printed("errors", "--width", str(width)).splitlines()
        assert width - 10 < max(map(len, lines)) <= width


@pytest.mark.parametrize(
    ("line", "answer"),
    [("exp", "explain"), ("wh", "why"), ("run deta", "detach"), ("errors leaf-m", "leaf-modified-inplace")],
)
def test_shells_complete_commands_lessons_and_codes(line: str, answer: str) -> None:
    words = f"tensorlens {line}"
    ended = start_command(
        code="import sys; sys.argv[0] = 'tensorlens'; sys.modules['torch'] = None\n"
        "from tensorlens.cli.app import main; main()",
        _TENSORLENS_COMPLETE="complete_bash",
        COMP_WORDS=words,
        COMP_CWORD=str(words.count(" ")),
    )
    assert answer in ended.stdout.split(), ended.stderr


# --- bad input ------------------------------------------------------------------------------------------------------


def test_a_missing_file() -> None:
    ended = run_command("explain", "nowhere.py")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert one_line(ended.stderr) == "tensorlens: no such file: nowhere.py\n"


@pytest.mark.parametrize("command", ["explain", "view"])
def test_a_path_longer_than_a_path_can_be(command: str) -> None:
    assert "File name too long" in bad_input(command, "long" * 1_000)


def test_a_directory(tmp_path: Path) -> None:
    assert "is a directory" in bad_input("explain", str(tmp_path))


def test_a_binary_file(tmp_path: Path) -> None:
    (tmp_path / "model.pt").write_bytes(b"PK\x03\x04\x00\x00\x00")
    assert "not Python source" in bad_input("explain", "model.pt", cwd=tmp_path)


@pytest.mark.parametrize("words", [("--trainin", "model.py"), ("--width", "80", "--trainin", "-m", "model")])
def test_an_unknown_option_before_the_script_is_no_file(words: tuple[str, ...]) -> None:
    ended = run_command("explain", *words)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "No such option: --trainin (Possible options: --training)" in ended.stderr


def test_options_of_a_script_or_a_module_are_its_own(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("import sys\nprint(sys.argv[1:])\n")
    (tmp_path / "--odd").write_text("print('odd')\n")
    for words in (("model.py", "--trainin"), ("-m", "model", "--trainin"), ("--reference", "model.py", "--trainin")):
        assert run_command("explain", *words, cwd=tmp_path).stdout.startswith("['--trainin']\n")
    assert run_command("explain", "--odd", cwd=tmp_path).stdout.startswith("odd\n")


def test_nothing_to_do() -> None:
    assert "explain what?" in bad_input("explain")
    assert "run what?" in bad_input("run")


def test_an_unknown_lesson_suggests_near_ones() -> None:
    assert "detach" in bad_input("run", "detatch")


def test_an_unknown_op() -> None:
    assert "no_such_method" in bad_input("compare", "clone", "no_such_method")


def test_an_unknown_code() -> None:
    assert "did you mean leaf-modified-inplace" in bad_input("errors", "leaf-modified-in-place")


def test_an_unknown_format(script: Path) -> None:
    assert "no such format: yaml" in bad_input("explain", "--format", "yaml", str(script))


@pytest.mark.parametrize("place", ["missing/report.md", "."])
def test_a_place_that_can_not_be_written_is_told_before_the_script_runs(script: Path, place: str) -> None:
    assert "can't write" in bad_input("explain", "-o", place, script.name, cwd=script.parent)


def test_a_message_that_is_none() -> None:
    assert "holds no message" in bad_input("errors", "-")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": "something else"}', "\x00"])
def test_a_trace_that_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "trace.json").write_text(text, encoding="utf-8")
    assert "trace.json" in bad_input("view", "trace.json", cwd=tmp_path)


def test_a_trace_that_is_missing() -> None:
    assert "nowhere.json" in bad_input("view", "nowhere.json")


# --- explain --------------------------------------------------------------------------------------------------------


def test_a_failing_script(script: Path) -> None:
    ended = start_command("explain", str(script), "--lr", "0.1", "-x")
    assert ended.returncode == 1
    assert ended.stdout.startswith("arguments ['--lr', '0.1', '-x']\n")
    assert "error[leaf-modified-inplace]: " in ended.stdout
    assert ended.stderr.startswith("Traceback (most recent call last):\n")
    assert "a leaf Variable that requires grad is being used in an in-place operation." in ended.stderr
    assert "tensorlens" not in ended.stderr
    assert "\x1b" not in ended.stdout


def test_a_script_that_is_fine(tmp_path: Path) -> None:
    (tmp_path / "fine.py").write_text(FINE, encoding="utf-8")
    ended = run_command("explain", "fine.py", cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("2.0\n")


def test_standard_input() -> None:
    ended = run_command("explain", "-", "one", text=FAILS)
    assert ended.returncode == 1
    assert ended.stdout.startswith("arguments ['one']\n")
    assert "error[leaf-modified-inplace]" in ended.stdout


def test_a_module(tmp_path: Path) -> None:
    package = tmp_path / "project"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "train.py").write_text("from project.setup import weight\nweight.mul_(2)\n", encoding="utf-8")
    (package / "setup.py").write_text("import torch\nweight = torch.ones(2, requires_grad=True)\n", encoding="utf-8")
    ended = run_command("explain", "-m", "project.train", cwd=tmp_path)
    assert ended.returncode == 1
    assert "error[leaf-modified-inplace]" in ended.stdout
    assert "setup.py:2" in ended.stdout


def test_a_syntax_error_is_shown_as_python_shows_it(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import torch\nx = (1,\n", encoding="utf-8")
    ended = run_command("explain", "broken.py", cwd=tmp_path)
    plain = subprocess.run([sys.executable, "broken.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == plain.stderr.splitlines()[-1]


@pytest.mark.parametrize("status", first_daily([7, 0]))
def test_exit_codes_of_the_script(tmp_path: Path, status: int) -> None:
    (tmp_path / "leaves.py").write_text("import sys\nsys.exit(int(sys.argv[1]))\n", encoding="utf-8")
    ended = run_command("explain", "-f", "json", "leaves.py", str(status), cwd=tmp_path)
    assert ended.returncode == (status != 0)
    assert json.loads(ended.stdout)["script"]["exit_code"] == status


def test_nothing_is_lost_when_the_process_goes_away(tmp_path: Path) -> None:
    (tmp_path / "gone.py").write_text(FINE + "import os\nvalue = torch.zeros(3)\nos._exit(5)\n", encoding="utf-8")
    ended = run_command("explain", "-f", "json", "gone.py", cwd=tmp_path)
    report = json.loads(ended.stdout)
    assert report["script"]["exit_code"] == 5
    assert any(event["line"] == 4 for event in report["events"])


def test_json_has_standard_output_for_itself(script: Path) -> None:
    ended = run_command("explain", "--format", "json", str(script), "a")
    report = json.loads(ended.stdout)
    assert report["format"] == "tensorlens.report"
    assert [finding["code"] for finding in report["diagnostics"]] == ["leaf-modified-inplace"]
    assert "arguments ['a']" in ended.stderr


def test_a_saved_trace_is_viewed_without_torch(script: Path) -> None:
    trace = script.parent / "trace.json"
    ended = run_command("explain", "-o", str(trace), str(script))
    assert ended.returncode == 1
    assert ended.stdout == "arguments []\n"
    shown = run_command("explain", "--width", "90", str(script)).stdout.removeprefix("arguments []\n")
    script.unlink()
    viewed = start_command("view", "--width", "90", str(trace), code=WITHOUT_TORCH)
    assert viewed.returncode == 1, viewed.stderr
    assert viewed.stdout == shown


@pytest.fixture(scope="module")
def failed(warm: Warm, tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """The trace of one run of the script."""
    path = tmp_path_factory.mktemp("failed") / "train.py"
    path.write_text(FAILS, encoding="utf-8")
    return warm.traced(path)[1]


@pytest.mark.parametrize(
    ("words", "story", "tensors"),
    [((), False, False), (("--story",), True, False), (("--tensors",), False, True), (("--all",), True, True)],
)
def test_options_that_unfold_a_report(
    script: Path, failed: Trace, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], story: bool, tensors: bool
) -> None:
    for module in ("cli.process_reports", "runner.launch"):  # imports the first before the second is changed
        monkeypatch.setattr(f"tensorlens.{module}.run_script", lambda *given: failed)
    trace = script.parent / "trace.json"
    assert said_by(["explain", *words, "-o", str(trace), str(script)])[0] == 1
    drawn = drawn_with(monkeypatch)
    for command in (["explain", *words, str(script)], ["explain", str(script), *words], ["view", *words, str(trace)]):
        assert said_by(command)[0] == 1
    assert [(options.story, options.tensors) for options in drawn] == 3 * [(story, tensors)]


def test_options_that_unfold_belong_to_the_script_after_two_dashes(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = drawn_with(monkeypatch)
    script.write_text("import sys\nassert sys.argv[1:] == ['--all']\n", encoding="utf-8")
    assert said_by(["explain", str(script), "--", "--all"])[0] == 0
    assert not drawn[0].story


def test_height_of_the_screen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LINES", "31")
    assert Output().options().height == 31
    assert Output(path=tmp_path / "report.txt").options().height == 50
    for unset in ("", "0", "many", "9" * 5000):
        monkeypatch.setenv("LINES", unset)
        monkeypatch.setattr(Output.__module__ + "._terminal_size", lambda: os.terminal_size((90, 24)))
        assert Output().options().height == 24
        monkeypatch.setattr(Output.__module__ + "._terminal_size", lambda: os.terminal_size((0, 0)))
        assert Output().options().height == 50


def drawn_with(monkeypatch: pytest.MonkeyPatch) -> list[RenderOptions]:
    """Returns a list to which each rendered report adds its options."""
    options: list[RenderOptions] = []

    def render(report: Report, form: str, given: RenderOptions) -> str:
        options.append(given)
        return ""

    monkeypatch.setattr("tensorlens.render.render", render)
    return options


def test_the_report_goes_to_a_file_by_its_suffix(script: Path) -> None:
    report = script.parent / "report.md"
    ended = run_command("explain", "-o", str(report), str(script))
    assert (ended.returncode, ended.stdout) == (1, "arguments []\n")
    assert "leaf-modified-inplace" in report.read_text(encoding="utf-8")


def test_colour_where_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "fine.py").write_text(FINE, encoding="utf-8")
    source = "a = f()\nout = a.sigmoid()\nc = out.detach()\nc.zero_()\nout.sum().backward()\n"
    (tmp_path / "trace.json").write_text(trace_file.dumps(written_alias(source).trace), encoding="utf-8")
    assert "\x1b[" in run_command("explain", "fine.py", cwd=tmp_path, FORCE_COLOR="1").stdout
    assert "\x1b[" in run_command("view", "trace.json", cwd=tmp_path, FORCE_COLOR="1").stdout
    assert "\x1b" not in run_command("view", "trace.json", cwd=tmp_path, FORCE_COLOR="1", NO_COLOR="1").stdout


def test_a_timeout(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(FINE + "import time\ntime.sleep(100)\n", encoding="utf-8")
    ended = run_command("explain", "--timeout", "4", "-f", "json", "slow.py", cwd=tmp_path)
    assert ended.returncode == 1
    assert json.loads(ended.stdout)["script"]["outcome"] == "timeout"


def test_a_report_as_json_in_a_file(script: Path) -> None:
    run_command("explain", "-f", "json", "-o", "report.json", script.name, cwd=script.parent)
    report = json.loads((script.parent / "report.json").read_text(encoding="utf-8"))
    assert report["format"] == "tensorlens.report"


# --- streams, interrupts, bugs in TensorLens --------------------------------------------------------------------------


@pytest.mark.parametrize("words", [["--reference=eager", "SCRIPT"], ["SCRIPT", "--reference=eager"]])
def test_a_reference_that_is_eager(words: list[str], tmp_path: Path) -> None:
    path = tmp_path / "fine.py"
    path.write_text(FINE)
    found = [str(path) if word == "SCRIPT" else word for word in words]
    ended = run_command("explain", "--width", "200", *found)
    assert ended.returncode == 0
    assert "eager: nothing was compared: nothing that `torch.compile` compiled was called" in ended.stdout


@pytest.mark.parametrize("words", [["--reference", "SCRIPT"], ["SCRIPT", "--reference"]])
def test_a_reference_without_a_value_is_a_run_with_copies(words: list[str], tmp_path: Path) -> None:
    path = tmp_path / "fine.py"
    path.write_text(FINE)
    ended = run_command("explain", *[str(path) if word == "SCRIPT" else word for word in words])
    assert ended.returncode == 0
    assert "reference: nothing was compared: there was no backward pass" in ended.stdout


FORKS = """\
import gc
import os

import torch

weight = torch.ones(2, requires_grad=True)
optimizer = torch.optim.SGD([weight])


def train(steps):
    for _ in range(steps):
        optimizer.zero_grad()
        weight.sum().backward()
        optimizer.step()


train(2)
child = os.fork()
if not child:
    train(20)
    waiting = [len(each.rows) for each in gc.get_objects() if type(each).__name__ == "Recorder"]
    print("rows:", waiting, torch._C._len_torch_function_stack(), flush=True)
    os._exit(0)
os.waitpid(child, 0)
train(4)
"""


@pytest.mark.parametrize(
    ("words", "depth", "said"),
    [
        (["--every", "4", "SCRIPT"], 0, "recorded 2 of 6 training steps (the first and every 4th)"),
        (["SCRIPT", "--every=4"], 0, "recorded 2 of 6 training steps (the first and every 4th)"),
        (["SCRIPT", "--steps", "3:"], 1, "recorded 5 of 6 training steps (the first and those from 3 on)"),
    ],
)
def test_a_sampled_run_that_forks(words: list[str], depth: int, said: str, tmp_path: Path) -> None:
    path = tmp_path / "forks.py"
    path.write_text(FORKS)
    ended = run_command("explain", "--width", "200", *[str(path) if word == "SCRIPT" else word for word in words])
    assert ended.returncode == 0
    assert f"rows: [0] {depth}\n" in ended.stdout  # the child records nothing, and leaves the stack as it was
    assert said in ended.stdout


def test_sampled_runs_that_are_refused(script: Path) -> None:
    for other in ("--reference", "--reference=eager", "--try", "--fix"):
        assert "--every and --steps do not go with" in bad_input("explain", "--every", "2", other, str(script))
    assert "do not go together" in bad_input("explain", "--every", "2", str(script), "--steps", "3")
    assert "--every takes a whole number from 1 on" in bad_input("explain", "--every", "0", str(script))


def test_references_that_are_none(script: Path, tmp_path: Path) -> None:
    assert "takes eager, or no value, not 'other'" in bad_input("explain", "--reference=other", str(script))
    assert "without --try and --fix" in bad_input("explain", "--reference=eager", "--try", str(script))
    path = tmp_path / "words.py"
    path.write_text("import sys\nprint(sys.argv[1:])\n")
    ended = run_command("explain", str(path), "--reference=other")
    assert "['--reference=other']" in ended.stdout


def test_a_reader_that_leaves() -> None:
    command = f"{sys.executable} -m tensorlens errors | head -n 1"
    ended = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.stdout, ended.stderr) == ("Met every day, the most frequent first\n", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_no_bug_of_ours() -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        command = [sys.executable, "-m", "tensorlens", "list"]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert ended.stderr == "tensorlens: can't write to standard output: No space left on device\n"


@pytest.mark.parametrize("closed", first_daily(["<&- >&- 2>&-", "<&-", ">&-", "2>&-"]))
def test_closed_streams(tmp_path: Path, closed: str) -> None:
    (tmp_path / "fine.py").write_text(FINE, encoding="utf-8")
    command = f"{sys.executable} -m tensorlens explain -o trace.json fine.py {closed}"
    ended = subprocess.run(command, shell=True, cwd=tmp_path, timeout=120, check=False)
    assert ended.returncode == 0
    assert load(tmp_path / "trace.json").script.outcome == "ok"


def test_interrupted(tmp_path: Path) -> None:
    (tmp_path / "waits.py").write_text(FINE + "import sys, time\nprint('up', flush=True)\ntime.sleep(60)\n", "utf-8")
    command = [sys.executable, "-m", "tensorlens", "explain", "waits.py"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        while process.stdout.readline() != "up\n":
            assert process.poll() is None
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does on Ctrl-C
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in stdout
    assert stderr.splitlines()[-1] == "KeyboardInterrupt"


BUG = """
import tensorlens.lessons.course.curriculum as course
course.course = None
from tensorlens.cli.app import main; main()
"""


def test_a_bug_of_ours_says_so() -> None:
    ended = start_command("list", code=BUG)
    assert ended.returncode == 70
    assert ended.stderr.startswith("tensorlens: this is a bug in tensorlens, not in your script: TypeError: ")
    assert len(ended.stderr.splitlines()) == 1
    assert "Traceback" in start_command("list", code=BUG, TENSORLENS_DEBUG="1").stderr


# --- compare, claims -------------------------------------------------------------------------------------------------


def test_compare_writes_what_the_suffix_names(tmp_path: Path) -> None:
    ended = start_command("compare", "detach", "clone", "--size", "1000", "-o", "both.json", cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (0, ""), ended.stderr
    comparison = json.loads((tmp_path / "both.json").read_text(encoding="utf-8"))
    assert comparison["format"] == "tensorlens.comparison"
    rows = {row["probe"]: row for row in comparison["rows"]}
    assert rows["shares_storage"]["differs"]


def test_claims_of_one_article() -> None:
    ended = start_command("claims", "004", "-f", "json")
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)
    assert "004" in bad_input("claims", "999")


# --- run ------------------------------------------------------------------------------------------------------------


def test_a_lesson() -> None:
    ended = start_command("run", "detach")
    assert ended.returncode == 0
    assert "claims   12 of 12 as recorded" in ended.stdout


def test_a_lesson_is_introduced_before_its_traceback(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        '"""Mine"""\nprint("hello", flush=True)\nx = 1\n#: [000-1] holds: x == 1\n#: x == 2\n1 / 0\n'
        "#: raises ZeroDivisionError\n",
        encoding="utf-8",
    )
    ended = run_command("run", "mine.py", cwd=tmp_path)
    assert ended.returncode == 1
    lines = ended.stdout.splitlines()
    assert lines[:5] == [
        "Mine",
        "Line 7 expects ZeroDivisionError at the end. Its traceback goes to standard error.",
        "-- the script prints --",
        "hello",
        "-- the report --",
    ]
    assert lines[-1] == "1 of 3 claims is false: line 5"
    assert "`detach()` returns a new tensor" not in ended.stdout  # what 000-1 is in the bundled lessons


def test_a_lesson_has_its_title_once_and_no_label_for_nothing(tmp_path: Path) -> None:
    (tmp_path / "quiet.py").write_text('"""Mine\n\nTaught."""\nx = 1\n#: x == 1\n', encoding="utf-8")
    shown = run_command("run", "quiet.py", cwd=tmp_path).stdout
    assert shown.startswith("Mine\n\nquiet.py   torch ")
    assert shown.count("Mine\n") == 1
    assert "\n\nTaught.\n\n" in shown
    assert "-- " not in shown
    assert run_command("run", "quiet.py", "-o", "report.txt", cwd=tmp_path).stdout == ""
    assert (tmp_path / "report.txt").read_text().count("\nMine\n") == 1


def test_a_lesson_that_python_can_not_read_is_not_said_to_have_no_claims(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text('"""Mine"""\nx = 1\n#: x == 1\nx =\n', encoding="utf-8")
    ended = run_command("run", "mine.py", cwd=tmp_path)
    assert ended.returncode == 1
    assert "SyntaxError" in ended.stdout
    assert "claims" not in ended.stdout


def test_new_writes_a_lesson(tmp_path: Path) -> None:
    assert run_command("new", "lesson.py", cwd=tmp_path).stdout == "wrote lesson.py; run it: tensorlens run lesson.py\n"
    ended = run_command("new", "lesson.py", cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "tensorlens: lesson.py exists already, and is left as it is\n"


def test_several_lessons_end_in_a_count() -> None:
    ended = run_command("run", "sigmoid", "data-alias")
    assert ended.stdout.endswith("\n2 lessons, 10 claims, all as recorded\n")


@pytest.mark.parametrize(
    ("verdict", "name"), [("refuted", "mine.py"), pytest.param("holds", "./mine.py", marks=pytest.mark.complete)]
)
def test_a_lesson_of_ones_own_is_held_to_its_verdict(tmp_path: Path, verdict: str, name: str) -> None:
    lesson = textwrap.dedent('''\
        """A lesson."""

        import torch

        x = torch.ones(2)
        #: VERDICT: x.sum().item() == 2.0
    ''')
    (tmp_path / "mine.py").write_text(lesson.replace("VERDICT", verdict), encoding="utf-8")
    assert run_command("run", name, cwd=tmp_path).returncode == (verdict == "refuted")


@pytest.mark.parametrize(
    "arguments",
    [
        ["explain", "-o", "report.pdf", "fine.py"],
        ["explain", "fine.py", "-o", "report.XHTML"],
        ["run", "detach", "-o", "report.svg"],
        ["list", "-o", "lessons.jsn"],
        ["list", "-o", "lessons.html"],
        ["errors", "-o", "errors.yaml"],
        ["claims", "004", "-o", "claims.log"],
        ["compare", "detach", "clone", "-o", "table.tex"],
        ["view", "trace.json", "-o", "trace.pdf"],
    ],
)
def test_a_file_whose_suffix_names_no_form_is_refused_before_anything_runs(
    tmp_path: Path, arguments: list[str]
) -> None:
    (tmp_path / "fine.py").write_text(FINE)
    refused = bad_input(*arguments, cwd=tmp_path)
    assert all(suffix in refused for suffix in (".txt", ".json", ".md"))
    assert [path.name for path in tmp_path.iterdir()] == ["fine.py"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["explain", "-o", "report.html", "fine.py"],
        ["explain", "fine.py", "-o", "report.HTML"],
        ["run", "detach", "-o", "report.html"],
        ["compare", "detach", "clone", "-o", "report.html"],
    ],
)
def test_a_run_and_a_comparison_can_be_a_page(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "fine.py").write_text(FINE)
    start_command(*arguments, cwd=tmp_path)
    [page] = [path.read_text() for path in tmp_path.iterdir() if path.name.lower() == "report.html"]
    assert page.startswith("<!doctype html>")
    assert '<pre id="text"' in page


def test_a_page_is_of_one_lesson() -> None:
    assert "one lesson at a time" in bad_input("run", "--all", "--format", "html")


def test_lists_are_no_page() -> None:
    assert "no such format: html (there are table, json, markdown)" in bad_input("errors", "--format", "html")


@pytest.mark.parametrize(
    ("name", "options", "begins"),
    [
        ("lessons.html", ["--format", "markdown"], "| Stage | Lesson |"),
        ("lessons.json", ["--format", "table"], "Start with: "),
        ("lessons.JSON", [], "{"),
        ("lessons", [], "Start with: "),
    ],
)
def test_a_form_that_is_asked_for_may_go_to_any_file(
    tmp_path: Path, name: str, options: list[str], begins: str
) -> None:
    assert printed("list", "-o", str(tmp_path / name), *options) == ""
    assert (tmp_path / name).read_text().startswith(begins)
