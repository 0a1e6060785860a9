"""`%load_ext tensorlens` in a shell without a front end."""

import gc
import os
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import tensorlens
from tensorlens.notebook.extension import _loaded as loaded

interactiveshell = pytest.importorskip("IPython.core.interactiveshell")
capture = pytest.importorskip("IPython.utils.capture")

Run = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Runs cells in a new shell with the extension; returns what the last one shows, the traceback included."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tensorlens.notebook.extension._SHARE", 1e9)  # silent mistakes are looked for after each cell
    shell = interactiveshell.InteractiveShell()
    shell.colors = "nocolor"
    shell.history_manager.enabled = False

    def run_cells(*cells: str) -> str:
        with capture.capture_output() as shown:
            for cell in cells[:-1]:
                shell.run_cell(cell, store_history=True)
        with capture.capture_output() as shown:
            shell.run_cell(cells[-1], store_history=True)
        texts = [output.data.get("text/plain", "") for output in shown.outputs]
        return "\n".join([str(shown.stdout), *texts])

    run_cells.__dict__["shell"] = shell
    run_cells("import torch, tensorlens", "before = torch.ones(3, requires_grad=True)", "%load_ext tensorlens")
    yield run_cells
    run_cells("%unload_ext tensorlens")
    interactiveshell.InteractiveShell.clear_instance()


def test_a_shell_that_does_not_load_the_extension_imports_nothing_of_the_package(tmp_path: Path) -> None:
    program = (
        "import importlib.metadata, sys; from IPython.core.interactiveshell import InteractiveShell as Shell\n"
        "shell = Shell.instance(); assert importlib.metadata.version('tensorlens')\n"
        "names = lambda: [name for name in sys.modules if name.partition('.')[0] in ('tensorlens', 'torch')]\n"
        "print(names()); shell.run_line_magic('load_ext', 'tensorlens'); print('tensorlens.notebook' in names())"
    )
    environment = {**os.environ, "IPYTHONDIR": str(tmp_path)}
    ended = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines() == ["[]", "True"]


ACROSS_CELLS = "y = before.exp()\nz = y * 2", "y.mul_(2)", "z.sum().backward()\ny.sum().backward()"


def test_a_mistake_across_cells_is_explained_below_the_traceback(run: Run) -> None:
    text = run(*ACROSS_CELLS)
    traceback, _, finding = text.partition("error[saved-tensor-modified-inplace]")
    assert "RuntimeError" in traceback
    assert "/tensorlens/" not in traceback, "frames of tensorlens"
    assert " --> In [5]:1:1" in finding
    assert "::: In [4]:1:5" in finding
    assert "needs the values that In [5]:1 overwrote before" in finding
    assert "`before` was made before" not in finding  # the finding does not name it
    assert finding.count("%tensorlens help") == 1
    assert "%tensorlens help" not in run("z.sum().backward()"), "the hint is given once"


def test_a_tensor_older_than_the_recording_is_said_to_be_older(run: Run) -> None:
    text = run("loss = (before * 2).exp().sum()\nwith torch.no_grad(): pass", "before += 1")
    assert "`before` was made before `%load_ext tensorlens`" in text
    text = run("%tensorlens reset", "x = torch.ones(2, requires_grad=True)", "x += 1")
    assert "error[leaf-modified-inplace]" in text
    assert "made before" not in text
    assert "`x` was made before `%tensorlens reset`" in run("%tensorlens reset", "x += 1")


def test_other_exceptions_have_no_explanation(run: Run) -> None:
    assert "error[" not in run("undefined_name")
    assert "error[" not in run("raise KeyboardInterrupt")
    assert "error[" not in run("def f(")
    assert "error[" in run("before += 1"), "the recording goes on"


TRAINING = """\
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    model(torch.ones(3)).sum().backward()
    optimizer.step()"""


def test_a_silent_mistake_is_shown_once_below_its_cell(run: Run) -> None:
    assert "warning[gradient-accumulates-without-zero-grad]" in run(TRAINING)
    assert "warning" not in run("model(torch.ones(3))")
    assert "warning[gradient-accumulates-without-zero-grad]" in run("%tensorlens")


def test_the_report_of_one_cell(run: Run) -> None:
    text = run("before.exp()", "%%tensorlens\na = before * 2\nassert a is not None\na.sum().backward()")
    assert "In [5]\n" in text
    assert " 2    a = before * 2" in text
    assert "before.exp()" not in text
    assert "no finding marks a line of this cell" in text
    text = run("%%tensorlens\nbefore += 1")
    assert "RuntimeError" in text
    assert text.count("error[leaf-modified-inplace]") == 1


def test_steps_that_come_in_a_later_cell_are_no_mistake(run: Run) -> None:
    text = run(
        "model = torch.nn.Linear(3, 1)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)",
        "for _ in range(3):\n    model.zero_grad()\n    model(torch.ones(3)).sum().backward()",
    )
    assert "optimizer-step-not-called" not in text
    assert "the recording goes on" not in text, "other cells show nothing"


def test_a_cell_that_runs_again_and_one_that_was_edited(run: Run) -> None:
    shell: Any = run.__dict__["shell"]
    run("y = before.exp()")
    for text in ("y.mul_(2)", "y.mul(2)"):
        with capture.capture_output():
            shell.run_cell(text, store_history=True, cell_id="second")
    text = run("y.sum().backward()")
    assert "In [5] was edited since, and ran again as In [6]" in text


def test_commands(run: Run, tmp_path: Path) -> None:
    run(*ACROSS_CELLS)
    assert "made by `before.exp()` (In [4]:1)" in run("%tensorlens why y")
    assert "tensorlens: no tensor is called `nothing`" in run("%tensorlens why nothing")
    assert "there is no `%tensorlens grow`" in run("%tensorlens grow")
    assert "%tensorlens save FILE" in run("%tensorlens help")
    run(f"%tensorlens save {tmp_path}/trace.json")
    trace = tensorlens.load(tmp_path / "trace.json")
    assert {"In [4]", "In [5]", "In [6]"} <= set(trace.sources)
    run("%tensorlens off")
    assert torch._C._len_torch_function_stack() == 0
    assert "nothing is recorded: `%tensorlens on` begins" in run("%tensorlens")
    assert "error[" not in run("before += 1")
    assert "error[leaf-modified-inplace]" in run("%tensorlens on", "before += 1")


def test_unloading_leaves_the_shell_and_torch_as_they_were(run: Run) -> None:
    shell: Any = run.__dict__["shell"]
    loaded = shell.find_magic("timeit")
    run("%unload_ext tensorlens")
    assert torch._C._len_torch_function_stack() == 0
    assert shell.find_magic("timeit") is not loaded
    assert "showtraceback" not in vars(shell)
    assert shell.find_magic("tensorlens") is None
    assert "error[" not in run("before += 1")
    assert "error[" in run("%load_ext tensorlens", "%reload_ext tensorlens", "before += 1")


def test_the_recording_begins_anew_after_many_cells(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    (extension,) = loaded.values()
    recording: Any = extension._recording
    recorder = weakref.ref(recording._session._recorder)
    monkeypatch.setattr("tensorlens.notebook.kernel_recording.MOST_RUNS", 4)
    run("x = torch.ones(2, requires_grad=True)", "y = x.exp()", "y = x.sin()")
    assert "(In [4]:1)" in run("%tensorlens why x")
    text = run("x += 1")
    assert "`x` was made before the recording began anew after In [7]" in text
    assert "x = torch.ones" not in text
    assert "not seen: what ran up to In [7]: the recording began anew after it" in run("%tensorlens")
    gc.collect()
    assert recorder() is None


def test_a_cell_with_many_places_ends_a_recording_too(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tensorlens.notebook.kernel_recording.MOST_SITES", 20)
    run("\n".join(["x = torch.ones(2)", *["x.exp()"] * 20]))
    assert "not seen: what ran up to In [4]" in run("%tensorlens")


def test_tensors_are_not_kept_alive(run: Run) -> None:
    names = run.__dict__["shell"].user_ns
    run("a = before * 2\nb = a.exp()", "b.add_(1)\nb.sum().backward()", "1")
    kept = [weakref.ref(names["a"]), weakref.ref(names["b"])]
    run("del a, b", "1 / 0")
    gc.collect()
    assert [reference() for reference in kept] == [None, None]


def test_what_timeit_runs_is_not_recorded(run: Run) -> None:
    run("%timeit -n 20 -r 2 before.exp()")
    text = run("%tensorlens")
    assert "   0 calls\n" in text
    assert "not seen: In [4]:1 what `%timeit` runs is not recorded" in text


def test_lines_below_time_are_lines_of_their_cell(run: Run) -> None:
    run("%%time\n\ndef f(t):\n    return t.exp()", "%%time\ny = f(before)\ny.mul_(2)", "%time 1 + 1")
    text = run("y.sum().backward()")
    assert " --> In [5]:3:1\n3 | y.mul_(2)" in text
    assert "::: In [4]:4:12\n4 |     return t.exp()" in text, "a function of an earlier cell"
    assert "3 + y = y.mul(2)" in text
    assert "made by `t.exp()` (In [4]:4)" in run("%tensorlens why y")
    text = run("%time y = before.exp()", "%tensorlens why y")
    assert "(In [9]:1)" in text


def test_a_script_that_run_starts(run: Run, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import torch\nw = torch.ones(2, requires_grad=True)\nw += 1\n")
    text = run("%run script.py")
    assert "error[leaf-modified-inplace]" in text
    assert " --> script.py:3:1" in text


def test_a_module_that_is_edited_and_loaded_again(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "edited_module_of_a_notebook.py"
    before_edit = "def old(x):\n    if x.requires_grad:\n        return x.exp()\n    return x\n\n"
    file.write_text(before_edit + "def loss(y):\n    y.add_(1)\n    return y.sum()\n")
    run(f"import importlib, {file.stem} as m", "keep = m.old", "m.loss(m.old(before.detach()).sin())")
    file.write_text("# longer now\n\n\n\ndef loss(y):\n    y.mul_(3)\n    return y.sum()\n")
    text = run("importlib.reload(m)", "m.loss(keep(before)).backward()")
    assert f" --> {file.name} (edited):6:5\n" in text
    assert "    y.mul_(3)" in text
    assert f"::: {file.name}:3:16\n" in text
    assert "        return x.exp()" in text, "code from before the edit has the text from before"


def test_a_function_that_autoreload_compiles_alone(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "reloaded_module_of_a_notebook.py"
    file.write_text("class Loss:\n    def of(self, y):\n        return y.sum()\n")
    run("%load_ext autoreload", "%autoreload 2", f"import {file.stem} as m", "loss = m.Loss()", "loss.of(before)")
    file.write_text(
        "class Loss:\n    # longer now\n\n    def of(self, y):\n        y.mul_(3)\n        return y.sum()\n"
    )
    os.utime(file, (2e9, 2e9))
    text = run("z = before.exp()", "loss.of(z).backward()")
    assert "^^^^^^^^^ overwritten here" in text
    assert "        y.mul_(3)" in text
    assert "# longer" not in text
    if "reloaded):" in text:  # the lines are those of the text that IPython compiles, without the comment
        assert f" --> {file.name} (edited: Loss.of, reloaded):3:9\n3 |         y.mul_(3)\n" in text
    else:  # IPython before 9 loads the whole file
        assert f" --> {file.name} (edited):5:9\n5 |         y.mul_(3)\n" in text
    run("%autoreload 0")


def test_an_error_of_ours_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("broken")

    monkeypatch.delenv("TENSORLENS_DEBUG", raising=False)
    monkeypatch.setattr("tensorlens.notebook.kernel_recording.report_on", broken)
    text = run("before += 1")
    assert "RuntimeError" in text
    assert "tensorlens: internal error: ZeroDivisionError: broken" in text
    assert "kernel_recording" not in text
