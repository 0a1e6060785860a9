"""`explain --fix` and `--fix --write`, as a user meets them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import jsonschema
import pytest
from fuzzing.texts import said_by
from support.commands import run_command
from support.folders import DOCS
from support.warm import Ran

from tensorlens.cli import trailing_options

SCHEMA = json.loads((DOCS / "report.schema.json").read_text())
PROGRAM = """\
# coding: latin-1
import torch
x = torch.ones(3, requires_grad=True)
y = x.exp()
y += 1
y.sum().backward()
print("\xe9\\33[31m", x.grad)
"""
COMMAND = [sys.executable, "-m", "tensorlens", "explain"]


def explain(*arguments: str, cwd: Path, text: str = "") -> Ran:
    return run_command("explain", *arguments, cwd=cwd, text=text)


def test_the_verified_fix_is_written(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    before = PROGRAM.encode("latin-1").replace(b"\n", b"\r\n")
    file.write_bytes(before)
    ended = explain("program.py", "--fix", "--write", cwd=tmp_path)
    assert ended.returncode == 1
    assert ended.stdout.endswith(
        textwrap.dedent(
            """\
            help: verified, the gradients are right
            --- program.py
            +++ program.py
            @@ -2,6 +2,6 @@
             import torch
             x = torch.ones(3, requires_grad=True)
             y = x.exp()
            -y += 1
            +y = y + 1
             y.sum().backward()
             print("\xe9\\33[31m", x.grad)
            wrote program.py
            """
        )
    )
    assert file.read_bytes() == before.replace(b"y += 1", b"y = y + 1")
    assert [path.name for path in tmp_path.iterdir()] == ["program.py"]


def test_a_script_from_standard_input_is_tried(tmp_path: Path) -> None:
    ended = explain("--fix", "-f", "json", "-", cwd=tmp_path, text=PROGRAM.partition("\n")[2])
    report = json.loads(ended.stdout)
    jsonschema.validate(report, SCHEMA)
    (fix,) = report["diagnostics"][0]["fixes"]
    assert (fix["verdict"], fix["differs"]) == ("verified", "")
    assert report["tried"] == {"tried": 1, "failed": 0, "left_out": 0, "note": "", "interrupted": False}


def test_a_module_whose_fix_is_not_verified_stays_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    text = "import os, torch\n" + PROGRAM.partition("\n")[2].replace("torch.ones(3,", "torch.rand(3,").replace(
        "x =", "torch.manual_seed(int.from_bytes(os.urandom(4), 'big')); x ="
    )
    file.write_text(text, "utf-8")
    ended = explain("--fix", "--write", "-m", "program", cwd=tmp_path)
    assert "the program does not repeat itself" in ended.stdout
    assert ended.stdout.endswith("nothing written: no help is verified\n")
    assert (ended.returncode, file.read_text("utf-8")) == (1, text)


def test_ctrl_c_in_a_further_run_leaves_the_report_of_the_first(tmp_path: Path) -> None:
    waiting = "import os, pathlib, time\nif pathlib.Path('ran').exists(): os.mkfifo('again'); time.sleep(60)\n"
    (tmp_path / "program.py").write_text(
        waiting + "pathlib.Path('ran').touch()\n" + PROGRAM.partition("\n")[2], "utf-8"
    )
    with subprocess.Popen(
        [*COMMAND, "--fix", "program.py"], cwd=tmp_path, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        while not (tmp_path / "again").exists():
            assert process.poll() is None
        os.killpg(process.pid, signal.SIGINT)
        text = process.stdout.read()
    assert process.returncode == 130
    assert "error[saved-tensor-modified-inplace]" in text
    assert "interrupted: not every help was tried\n" in text


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--write", "program.py"], "--write goes with --fix"),
        (["program.py", "--write"], "--write goes with --fix"),
        (["--fix", "--write", "-"], "--write can't change a script from standard input"),
    ],
)
def test_a_wrong_use_is_one_line(words: list[str], line: str, tmp_path: Path) -> None:
    assert said_by(["explain", *words]) == (2, "", f"tensorlens: {line}\n")


def test_the_options_are_the_same_after_the_script() -> None:
    split = trailing_options.split(["--fix", "--write"])
    assert (split.argv, split.fix, split.write) == ((), True, True)
    assert trailing_options.split(["--", "--fix"]).argv == ("--fix",)
