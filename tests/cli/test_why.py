"""Runs `tensorlens why` as a user does: on scripts and saved traces, with wrong names, and in every form."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path

import jsonschema
import pytest
from fuzzing.texts import said_by
from support.commands import run_command, start_command
from support.folders import DOCS, ROOT
from support.releases import in_this_release
from support.warm import Ran

from tensorlens.cli.report_options import WHY_OPTIONS
from tensorlens.cli.trailing_options import leading, split
from tensorlens.errors import UsageError

SCHEMA = json.loads((DOCS / "why.schema.json").read_text(encoding="utf-8"))
WITHOUT_TORCH = "import sys; sys.modules['torch'] = None; from tensorlens.cli.app import main; main()"
SCRIPT = """\
import sys
import torch
from torch import nn

torch.manual_seed(0)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(4, 8)
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        hidden = self.enc(x).detach()
        return self.head(hidden)


model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batch = [torch.randn(16, 4), torch.randn(16, 1)]
for step in range(3):
    out = model(batch[0])
    loss = nn.functional.mse_loss(out, batch[1])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
optimizer.zero_grad()
alias = model.head.weight.detach()
alias[0] = 1.0
print("arguments", sys.argv[1:])
"""


def why(*words: str, cwd: Path, **environment: str) -> Ran:
    return run_command("why", *words, cwd=cwd, **{"NO_COLOR": "1", "COLUMNS": "100", **environment})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the script and its saved trace."""
    made = tmp_path_factory.mktemp("why")
    (made / "train.py").write_text(SCRIPT, encoding="utf-8")
    run_command("explain", "--training", "-o", "trace.json", "train.py", cwd=made)
    return made


def asked(folder: Path, *words: str) -> tuple[int, str, str]:
    """Asks a saved trace, in this process."""
    with contextlib.chdir(folder):
        return said_by(["why", *words])


def printed(folder: Path, *words: str) -> str:
    code, out, err = asked(folder, *words)
    assert (code, err) == (0, "")
    return out


def answered(folder: Path, *words: str) -> str:
    return " ".join(printed(folder, *words).split())


def as_json(folder: Path, *words: str) -> dict[str, object]:
    data = json.loads(printed(folder, *words, "--format", "json"))
    jsonschema.validate(data, SCHEMA)
    return dict(data)


def refused(folder: Path, *words: str) -> str:
    code, out, err = asked(folder, *words)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    return err


def test_a_script_is_run_and_asked(folder: Path) -> None:
    ended = start_command("why", "model.enc.weight.grad", "train.py", "--epochs", "2", cwd=folder, COLUMNS="100")
    assert ended.returncode == 0
    assert "arguments ['--epochs', '2']" in ended.stdout
    shown = " ".join(ended.stdout.split())
    assert "its path to `loss` (line 26) ends at line 15" in shown
    assert "`SGD` (line 20): 3 steps, lr 0.1 it has not moved" in shown


def test_a_saved_trace_is_asked_without_torch(folder: Path) -> None:
    ended = start_command("why", "model.head.weight", "trace.json", cwd=folder, code=WITHOUT_TORCH, COLUMNS="100")
    assert (ended.returncode, ended.stderr) == (0, "")
    shown = " ".join(ended.stdout.split())
    assert "Parameter, float32[1, 8], leaf, requires grad, version 5" in shown
    assert "`optimizer.zero_grad()` (line 28) set it to None after the last backward pass that filled it" in shown
    assert "`alias[0] = ...` (line 30) through `alias`, v4 -> v5" in shown
    assert "`alias`, made by `model.head.weight.detach()` (line 29)" in shown
    assert "`loss`, 3 passes (line 26)" in shown
    assert "line 16: `self.head(hidden)` in `Model.forward`" in shown
    assert "what changes it: its gradients, writes of the script" in shown


def test_all_writes_are_listed_with_the_option(folder: Path) -> None:
    assert "2 earlier writes (--writes lists all)" in answered(folder, "model.head.weight", "trace.json")
    listed = answered(folder, "model.head.weight", "trace.json", "--writes")
    assert "earlier" not in listed
    assert [f"v{n} -> v{n + 1}" in listed for n in range(5)] == [True] * 5


def test_the_answer_may_be_about_an_earlier_time(folder: Path) -> None:
    shown = answered(folder, "model.head.weight", "--at", "26", "trace.json")
    assert "after the last recorded run of train.py:26" in shown
    assert "version 3" in shown
    assert ".grad 1x8 float32 filled last by backward (line 26, pass 3 of 3)" in shown
    assert "alias" not in shown


def test_a_line_that_calls_a_module_of_the_script_has_a_time_too(folder: Path) -> None:
    data = as_json(folder, "model.head.weight", "--at", "23", "trace.json")
    assert data["at"] == {"file": "train.py", "line": 23}
    tensor = data["tensor"]
    assert isinstance(tensor, dict)
    assert (tensor["version"], tensor["gradient"]) == (3, "set")  # of the second iteration


def test_a_name_of_several_tensors_in_turn_means_the_last(folder: Path) -> None:
    shown = answered(folder, "loss", "trace.json")
    assert "3 tensors were called so, one after the other; this is the last of them" in shown
    assert "it is no leaf: `nn.functional.mse_loss(out, batch[1])` (line 24) computed it" in shown
    assert "1 backward pass of the run started from it (line 26)" in shown


@pytest.mark.parametrize("name", ["batch[0]", " batch[ 0 ] "])
def test_an_item_is_a_name(folder: Path, name: str) -> None:
    assert "it has never required grad" in answered(folder, name, "trace.json")


def test_a_module_lists_its_tensors(folder: Path) -> None:
    shown = printed(folder, "model", "trace.json", "--width", "80")
    rows = [line.split() for line in shown.splitlines() if line.startswith(("enc", "head"))]
    assert [row[0] for row in rows] == ["enc.weight", "enc.bias", "head.weight", "head.bias"]
    reasons = [re.search(r"None (\(\d\))", " ".join(row)) for row in rows]
    assert [found and found[1] for found in reasons] == ["(1)", "(1)", "(2)", "(2)"]
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize("name", ["model.enc.weight", "model.head.bias.grad", "loss", "model", "batch[1]", "alias"])
def test_json_is_as_the_schema_says(folder: Path, name: str) -> None:
    data = as_json(folder, name, "trace.json")
    assert data["asked"] == name
    assert (data["tensor"] is None) == (name == "model")


def test_statements_name_their_lines(folder: Path) -> None:
    statements = as_json(folder, "model.enc.weight", "trace.json")["statements"]
    assert isinstance(statements, list)
    reason = next(each for each in statements if each["topic"] == "reason")
    assert reason["lines"] == [{"file": "train.py", "line": 15}, {"file": "train.py", "line": 26}]


def test_markdown(folder: Path) -> None:
    shown = printed(folder, "model.enc.weight", "trace.json", "--format", "markdown")
    assert shown.startswith("# `model.enc.weight`\n")
    assert "- its path to `loss` (line 26) ends at line 15" in shown
    listed = printed(folder, "model", "trace.json", "--format", "markdown")
    assert "| `enc.weight` | float32\\[8, 4\\] | yes | None (1) |" in listed


def test_the_answer_goes_to_a_file(folder: Path, tmp_path: Path) -> None:
    assert printed(folder, "loss", "trace.json", "-o", str(tmp_path / "answer.json")) == ""
    assert json.loads((tmp_path / "answer.json").read_text(encoding="utf-8"))["format"] == "tensorlens.answer"


@pytest.mark.parametrize(("columns", "widest"), [("80", 80), ("120", 120), ("44", 44)])
def test_the_answer_keeps_to_the_width(folder: Path, columns: str, widest: int) -> None:
    shown = printed(folder, "model.head.weight", "trace.json", "--writes", "--width", columns)
    assert max(map(len, shown.splitlines())) <= widest


def test_an_unknown_name_gets_the_closest_ones(folder: Path) -> None:
    assert "no tensor is called `modle.enc.weigth`; did you mean `model.enc.weight`" in refused(
        folder, "modle.enc.weigth", "trace.json"
    )
    assert "did you mean `model.head.bias.grad`" in refused(folder, "model.head.bais.grad", "trace.json")


@pytest.mark.parametrize(
    "name",
    [
        "[bold]x[/bold]",
        "\x1b[31mred",
        "x" * 10_000,
        "__import__('os').abort()",
        "loss\nloss2",
        "\u202eevil",
        "((((" * 900,
    ],
)
def test_hostile_names_are_data(folder: Path, name: str) -> None:
    said = refused(folder, name, "trace.json")
    assert said.startswith("tensorlens: no tensor is called ")
    assert "\x1b" not in said
    assert len(said) < 300


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "why what?"),
        (("x",), "why NAME of what?"),
        (("x", "missing.py"), "no such file: missing.py"),
        (("x", "missing.json"), "can't read missing.json"),
        (("loss", "trace.json", "--at", "2"), "no call of line 2 is recorded"),
        (("loss", "--at", "first", "trace.json"), "--at takes a line"),
        (("loss", "--at"), "--at has no value"),
        (("loss", "trace.json", "more"), "is a saved trace, and takes no arguments"),
        (("loss", "--width", "wide", "trace.json"), "--width has no value, or a wrong one"),
    ],
)
def test_wrong_uses_get_one_line(folder: Path, words: tuple[str, ...], said: str) -> None:
    assert said in refused(folder, *words)


def test_a_script_that_fails_is_still_asked(tmp_path: Path) -> None:
    source = "import torch\nx = torch.ones(2, requires_grad=True)\ny = x.exp()\ny.add_(1)\ny.sum().backward()\n"
    (tmp_path / "fails.py").write_text(source, encoding="utf-8")
    ended = why("x", "fails.py", cwd=tmp_path)
    assert ended.returncode == 0
    shown = " ".join(ended.stdout.split())
    assert "the script ended with RuntimeError at fails.py:5" in shown
    assert "the backward pass at line 5 leads to it, and failed: RuntimeError: one of the variables" in shown
    kept = " ".join(why("y", "--timeout", "60", "fails.py", cwd=tmp_path).stdout.split())
    assert "`y.sum()` -> `ExpBackward0` (line 3) -> saved `result` at version 0 -> storage of 8 bytes" in kept
    assert "`y.add_(1)` (line 4), v0 -> v1" in kept


def test_an_unknown_name_in_a_script_that_fails_says_so(tmp_path: Path) -> None:
    (tmp_path / "fails.py").write_text("import torch\ntorch.ones(2) @ torch.ones(3)\nx = 1\n", encoding="utf-8")
    ended = why("x", "fails.py", cwd=tmp_path)
    assert ended.returncode == 2
    assert "no tensor is called `x` (the script ended with RuntimeError at fails.py:2)" in ended.stderr


def test_options_have_three_places() -> None:
    options, rest = leading(["--at", "3", "--writes", "train.py", "--at", "4"], WHY_OPTIONS)
    assert (options.at, options.writes, rest) == ("3", True, ["train.py", "--at", "4"])
    assert split(rest[1:], WHY_OPTIONS).at == "4"
    assert split(["--at", "4", "--epochs", "2"], WHY_OPTIONS).argv == ("--at", "4", "--epochs", "2")
    assert options.joined_with(split(rest[1:], WHY_OPTIONS)).at == "4"
    with pytest.raises(UsageError):
        leading(["--timeout", "soon", "x.py"], WHY_OPTIONS)


def test_the_document_shows_what_the_command_prints() -> None:
    text = (DOCS / "why.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```console\n\$ tensorlens why ([^\n]*)\n(.*?)```", text, re.DOTALL)
    assert len(blocks) >= 3
    for command, shown in blocks:
        ended = why(*command.split(), cwd=ROOT, COLUMNS="80")
        real = re.sub(r"torch (\d+\.\d+\.\d+)\+\w+", r"torch \1", ended.stdout)
        assert in_this_release(shown).splitlines() == real.splitlines(), command


# --- modules that are run ---------------------------------------------------------------------------------------------


def test_a_module_of_a_package_is_run(tmp_path: Path) -> None:
    package = tmp_path / "work"
    package.mkdir()
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "train.py").write_text(SCRIPT, encoding="utf-8")
    (package / "trace.json").write_text("{}", encoding="utf-8")
    asked = why("-m", "work.train", "model.head.weight", "one", "two", cwd=tmp_path)
    after = why("model.head.weight", "-m", "work.train", "one", "two", cwd=tmp_path)
    assert after.stdout == asked.stdout
    assert asked.returncode == 0, asked.stderr
    assert "arguments ['one', 'two']" in asked.stdout
    assert "model.head.weight   -m work.train   torch" in asked.stdout
    assert "`loss`, 3 passes (work/train.py:26)" in " ".join(asked.stdout.split())
    other = why("model.head.bais", "-m", "work.train", cwd=tmp_path)
    assert other.returncode == 2
    assert "model.head.bias" in other.stderr
    assert "Traceback" not in other.stderr


def test_a_module_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    asked = why("x", "-m", "no_such_module", cwd=tmp_path)
    assert asked.returncode == 2
    assert "no_such_module" in asked.stderr
    assert "Traceback" not in asked.stderr
    assert asked.stdout == ""
