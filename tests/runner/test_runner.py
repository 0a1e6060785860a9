"""Programs in a process of their own: whatever becomes of them, what they are is unchanged and nothing is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tensorlens.errors import UsageError
from tensorlens.journal.batches import pack, unpack
from tensorlens.journal.row_buffer import plain
from tensorlens.journal.rows import GapRow
from tensorlens.records.invariants import validate
from tensorlens.records.model import Call, Gap, Trace
from tensorlens.runner.launch import RunOptions, Target, run_script

PRELUDE = "import torch\nx = torch.ones(2)\ny = x * 2\n"


def written(folder: Path, text: str, name: str = "program.py") -> Path:
    path = folder / name
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return path


def run(path: Path, *argv: str, timeout: float | None = None) -> Trace:
    trace = run_script(Target("file", str(path), argv), RunOptions(timeout=timeout))
    assert validate(trace) == []
    return trace


def ops(trace: Trace) -> list[str]:
    return [event.op for event in trace.events if isinstance(event, Call)]


def test_plain_end_and_arguments(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    body = "import sys\nprint(sys.argv[1:], __name__, __file__, sys.path[0])\n"
    path = written(tmp_path, PRELUDE + body)
    trace = run(path, "--lr", "0.1")
    assert capfd.readouterr().out == f"['--lr', '0.1'] __main__ {path} {tmp_path}\n"
    assert (trace.script.outcome, trace.script.exit_code) == ("ok", 0)
    assert ops(trace) == ["torch.ones", "Tensor.mul"]


def test_the_traceback_is_pythons_own(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, PRELUDE + "def f():\n    (y @ torch.ones(3)).sum()\n\nf()\n")
    run(path)
    under_lens = capfd.readouterr().err
    plain = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    assert under_lens == plain.stderr
    assert "tensorlens" not in under_lens


def test_a_syntax_error_is_shown_as_python_shows_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, "import torch\nx = = 1\n")
    trace = run(path)
    assert (
        capfd.readouterr().err
        == subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False).stderr
    )
    assert trace.failures[0].type == "SyntaxError"
    assert trace.failures[0].site is not None
    assert trace.sites[trace.failures[0].site].span.line == 2


def test_threads_and_exit_callbacks_run_to_their_end(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    body = """
        import atexit, threading, time, torch
        atexit.register(lambda: print("at exit", (torch.ones(1) * 3).item()))
        def work():
            time.sleep(0.3)
            print("thread", torch.full((1,), 5.0).item())
        threading.Thread(target=work).start()
        print("main is done")
    """
    trace = run(written(tmp_path, body))
    assert capfd.readouterr().out == "main is done\nthread 5.0\nat exit 3.0\n"
    assert "torch.full" in ops(trace)


@pytest.mark.parametrize("pure", ["", "1"])
def test_exit_callbacks_may_be_torch_functions(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, pure: str
) -> None:
    """No Python code calls torch then: there is no frame."""
    monkeypatch.setenv("TENSORLENS_PURE_PYTHON", pure)
    body = """
        import atexit, torch
        x, leaf = torch.ones(2), torch.ones(2, requires_grad=True)
        x.exp(), torch.relu(x)
        atexit.register(lambda: print(x.tolist(), leaf.grad.tolist()))
        for function, *arguments in [
            (x.add_, 1), (torch.exp, x), (torch.relu, x), (torch.cat, [x, x]), (torch.ones, 2), (torch.as_tensor, x),
            (x.numpy,), (x.tolist,), (leaf.sum().backward,), (torch.max, x, 0), (leaf.zero_,)
        ]:
            atexit.register(function, *arguments)
    """
    trace = run(written(tmp_path, body))
    out, err = capfd.readouterr()
    assert out == "[2.0, 2.0] [1.0, 1.0]\n"
    refused, reason = err.splitlines()
    assert refused.startswith("Exception ignored in atexit callback: <built-in method zero_ ")
    assert reason == "RuntimeError: a leaf Variable that requires grad is being used in an in-place operation."
    assert [ops(trace).count(op) for op in ("torch.exp", "torch.cat", "torch.max", "Tensor.add_")] == [1, 1, 1, 1]
    assert [failure.op for failure in trace.failures] == ["Tensor.zero_"]


def test_forked_processes_go_their_own_way(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    body = """
        import os, torch
        child = os.fork()
        if child:
            os.waitpid(child, 0)  # one after the other, in one file
        print("child" if child == 0 else "parent", torch.ones(1).item(), flush=True)
        if child == 0:
            os._exit(0)
    """
    trace = run(written(tmp_path, body))
    assert capfd.readouterr().out == "child 1.0\nparent 1.0\n"
    assert ops(trace).count("torch.ones") == 1
    assert any("forked" in event.reason for event in trace.events if isinstance(event, Gap))


def test_other_encodings_line_endings_and_marks(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "odd.py"
    path.write_bytes("\ufeff# 说明\r\nimport torch\r\n数 = torch.ones(1)  # 注释\r\nprint(数.item())\r\n".encode())
    trace = run(path)
    assert capfd.readouterr().out == "1.0\n"
    assert trace.sites[0].targets == ("数",)
    assert trace.sites[0].span.line == 3
    latin = tmp_path / "latin.py"
    latin.write_bytes("# coding: latin-1\nprint('é')\n".encode("latin-1"))
    assert run(latin).script.outcome == "ok"


def test_a_module_and_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "pack"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "helper.py").write_text("import torch\ndef make():\n    return torch.zeros(1)\n")
    (package / "__main__.py").write_text("from . import helper\nhelper.make()\nassert __package__ == 'pack'\n")
    monkeypatch.chdir(tmp_path)
    trace = run_script(Target("module", "pack"), RunOptions())
    assert (trace.script.outcome, ops(trace)) == ("ok", ["torch.zeros"])
    assert trace.sites[0].span.file.endswith("__main__.py")
    code = (
        "from tensorlens.runner.launch import *; t = run_script(Target('stdin', '-')); print(len(t.events), t.sources)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input="import torch\ntorch.ones(1)\n", capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("1 {'<stdin>':")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: None, "no such file"),
        (lambda path: path.mkdir(), "is a directory"),
        (lambda path: path.write_bytes(b"\x89PNG\0"), "is not Python source"),
    ],
)
def test_what_is_no_script_is_refused_in_one_line(tmp_path: Path, make, words: str) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "thing.py"
    make(path)
    with pytest.raises(UsageError, match=words) as refused:
        run_script(Target("file", str(path)))
    assert "\n" not in str(refused.value)


def test_ctrl_c_interrupts_the_script_and_the_report_follows(tmp_path: Path) -> None:
    path = written(tmp_path, PRELUDE + "print('ready', flush=True)\nimport time\ntime.sleep(60)\n")
    command = [sys.executable, "-m", "tensorlens", "explain", str(path)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "KeyboardInterrupt" in err
    assert "tensorlens" not in err
    assert "y = x * 2" in out


def test_a_journal_that_was_damaged_gives_what_stands_before(tmp_path: Path) -> None:
    whole = pack([plain(GapRow("one", None))]) + pack([plain(GapRow("two", None))])
    for damage in (whole[:-1], whole[:-20] + b"\xff" * 20, whole + b"\xff" * 8, whole + pack([])[:4]):
        path = tmp_path / "journal"
        path.write_bytes(damage)
        with path.open("rb") as stream:
            assert next(unpack(stream)) == [plain(GapRow("one", None))]


def test_a_module_of_the_programs_own_may_have_the_name_of_one_of_pythons(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "termios.py").write_text("value = 'its own'\n")
    package = tmp_path / "unicodedata"
    package.mkdir()
    (package / "__init__.py").write_text("value = 'its own package'\n")
    script = tmp_path / "program.py"
    script.write_text("import torch\nimport termios\nprint(termios.value)\nprint(torch.ones(1))\n")
    trace = run_script(Target("file", str(script)))
    assert capfd.readouterr() == ("its own\ntensor([1.])\n", "")
    assert trace.script.outcome == "ok"
    reasons = [event.reason for event in trace.events if isinstance(event, Gap)]
    told = "a module `{}` is beside the program: where PyTorch imports one of that name, it gets Python's own"
    assert reasons == [told.format("unicodedata")]  # this process imports no termios


def test_equal_code_in_two_files_is_two_places(tmp_path: Path) -> None:
    """Code objects compare equal without regard to their file."""
    source = "import torch\ndef double(x):\n    return x * 2\n"
    for name in ("first", "second"):
        (tmp_path / f"{name}.py").write_text(source)
    script = tmp_path / "program.py"
    script.write_text(
        "import torch\nimport first, second\nx = torch.ones(2)\ny = first.double(x)\nz = second.double(x)\n"
    )
    trace = run_script(Target("file", str(script)))
    calls = [event for event in trace.events if isinstance(event, Call) and event.op.endswith("mul")]
    assert [Path(trace.sites[call.site].span.file).name for call in calls] == ["first.py", "second.py"]
