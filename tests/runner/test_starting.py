"""Tests the start of programs: imports before they run, Python's own options, directories, zip files."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipapp
from pathlib import Path

import pytest

from tensorlens.records.model import Gap
from tensorlens.records.trace_file import load
from tensorlens.runner.launch import Target, run_script
from tensorlens.runner.python_process import options

CONSOLE = "import os, sys; os.chdir(sys.argv.pop(1)); sys.path.remove(''); from tensorlens.cli.app import main; main()"
HOSTILE = """
    collections enum functools gc io json marshal multiprocessing numpy os queue random re rich runpy signal site
    subprocess tempfile tensorlens threading tokenize torch types typer typing unicodedata warnings zipfile zlib
""".split()  # of every kind: frozen, built in, of the standard library and installed
PLAIN = "import sys, torch\nprint(torch.ones(1), sys.path[0])\n"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of modules that print when they run."""
    folder = tmp_path_factory.mktemp("hostile")
    for name in HOSTILE:
        (folder / f"{name}.py").write_text(f"import sys\nsys.__stderr__.write('{name} ran\\n')\n")
    return folder


def run(*command: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
        check=False,
    )


def script(folder: Path, text: str = PLAIN) -> Path:
    path = folder / "program.py"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "arguments",
    [["explain", "-o", "{out}", "{script}"], ["compare", "detach", "clone", "--size", "10"], ["claims", "004"]],
)
def test_nothing_in_the_current_directory_is_imported(arguments: list[str], hostile: Path, tmp_path: Path) -> None:
    names = {"out": str(tmp_path / "report.txt"), "script": str(script(tmp_path))}
    command = [argument.format(**names) for argument in arguments]
    ended = run("-c", CONSOLE, hostile, *command, cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout


def test_python_m_takes_only_what_it_imports_itself_from_the_current_directory(hostile: Path, tmp_path: Path) -> None:
    """`python -m` imports `runpy` with the current directory on its path: what that needs is beyond our reach."""
    probe = "import sys; before = set(sys.modules); import runpy; print(*sys.modules)"
    needed = set(run("-c", probe, cwd=tmp_path).stdout.split()) | {"tensorlens"}
    for name in HOSTILE:
        if name not in needed:
            (tmp_path / f"{name}.py").write_text((hostile / f"{name}.py").read_text())
    assert (tmp_path / "typing.py").exists()
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    ended = run("-m", "tensorlens", "explain", "-o", "report.txt", script(folder), cwd=tmp_path)
    assert (ended.stdout, ended.stderr) == (f"tensor([1.]) {folder}\n", "")


def test_a_folder_of_pythonpath_comes_first_for_the_program_and_last_for_us(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in plain python: `PYTHONPATH=:` is the current directory."""
    here, folder = tmp_path / "here", tmp_path / "app"
    here.mkdir()
    folder.mkdir()
    (here / "random.py").write_text("VALUE = 'its own'\n")
    path = script(folder, "import torch, random\nprint(random.VALUE, torch.ones(1))\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([os.environ.get("PYTHONPATH", ""), ""]))
    monkeypatch.chdir(here)
    trace = run_script(Target("file", str(path)))
    assert capfd.readouterr() == ("its own tensor([1.])\n", "")
    reasons = [event.reason for event in trace.events if isinstance(event, Gap)]
    assert reasons == [f"a module `random` is in {here}: where PyTorch imports one of that name, it gets Python's own"]


def test_a_program_with_pythons_names_beside_it_finds_its_own(hostile: Path, tmp_path: Path) -> None:
    for name in ("json", "signal", "random"):
        (tmp_path / f"{name}.py").write_text(f"VALUE = 'my {name}'\n")
    path = script(tmp_path, "import json, signal, random\nprint(json.VALUE, signal.VALUE, random.VALUE)\n")
    plain = run(path, cwd=tmp_path)
    ended = run("-m", "tensorlens", "explain", "-o", "report.txt", path, cwd=tmp_path.parent)
    assert (ended.stdout, ended.stderr) == (plain.stdout, plain.stderr)
    assert plain.stdout == "my json my signal my random\n"


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("python -m tensorlens list", ""),
        ("python -O -W error -m tensorlens -W", "-O -Werror"),
        ("python -OOWerror::UserWarning -Xdev -X utf8 script.py -B", "-O -O -Werror::UserWarning -Xdev -Xutf8"),
        ("python -Bsbbu -c pass", "-B -s -b -b -u"),
        ("python -Im tensorlens", "-I"),
        ("python -mtensorlens -O", ""),
        ("python --check-hash-based-pycs never -E - -O", "--check-hash-based-pycs never -E"),
        ("python -v -i -q -d -P -S -R -- -O", "-v -i -q -d -P -S -R"),
        ("python -x script.py", ""),
        ("python -W", ""),
        ("python", ""),
    ],
)
def test_pythons_own_options_are_those_before_the_program(words: str, found: str) -> None:
    assert options(words.split()) == found.split()


@pytest.mark.parametrize("given", ["-OO -B -u", "-W error -X dev -b -s -P"])
def test_pythons_own_options_reach_the_program(given: str, tmp_path: Path) -> None:
    body = '''
        """text"""
        import sys, warnings, torch
        names = [name for name in dir(sys.flags) if name[0] != "_"]
        print({name: getattr(sys.flags, name) for name in names if not callable(getattr(sys.flags, name))})
        print(__doc__, __debug__, sys.warnoptions, sys._xoptions, sys.path[0], sys.stdout.write_through)
        warnings.warn("mine")
        assert torch.ones(2).sum() > 100
    '''
    path = script(tmp_path, "\n".join(line[8:] for line in body.splitlines()[1:]))
    plain = run(*given.split(), path, cwd=tmp_path)
    ended = run(*given.split(), "-m", "tensorlens", "explain", "-o", "report.txt", path, cwd=tmp_path)
    assert (ended.stdout, ended.stderr) == (plain.stdout, plain.stderr)
    assert len(plain.stdout.splitlines()) == 2


MAIN = """\
import sys, torch, helper
x = helper.make()
y = (x * 2).sum(); y.backward()
print(__name__, __file__, __spec__.name, __spec__.origin, __package__, __cached__, type(__loader__))
print(sys.argv, sys.path[0])
raise ValueError(x.grad.tolist())
"""
HELPER = "import torch\ndef make():\n    return torch.ones(2, requires_grad=True)\n"


@pytest.mark.parametrize("kind", ["directory", "zipapp"])
def test_a_directory_or_a_zip_file_runs_as_in_plain_python(kind: str, tmp_path: Path) -> None:
    program = tmp_path / "app"
    program.mkdir()
    (program / "__main__.py").write_text(MAIN)
    (program / "helper.py").write_text(HELPER)
    if kind == "zipapp":
        zipapp.create_archive(program, tmp_path / "app.pyz", "/usr/bin/env python3")
    name = {"directory": "app", "zipapp": "app.pyz"}[kind]
    plain = run(name, "--lr", "1", cwd=tmp_path)
    ended = run("-m", "tensorlens", "explain", "-o", "trace.json", name, "--lr", "1", cwd=tmp_path)
    runpy = re.compile(r'  File "<frozen runpy>".*\n')
    assert (ended.stdout, ended.stderr) == (plain.stdout, runpy.sub("", plain.stderr))
    assert "ValueError: [2.0, 2.0]" in plain.stderr
    shown = run("-m", "tensorlens", "view", "trace.json", "--width", "120", cwd=tmp_path).stdout
    assert shown.startswith(f"{name}   torch ")
    assert "ended with ValueError at line 6" in shown
    assert "return torch.ones(2, requires_grad=True)" in shown
    assert "6 | raise ValueError(x.grad.tolist())" in shown


def test_modules_of_a_zip_file_may_have_the_names_of_pythons(tmp_path: Path) -> None:
    program = tmp_path / "app"
    program.mkdir()
    (program / "__main__.py").write_text("import random\nprint(random.VALUE)\n")
    (program / "random.py").write_text("VALUE = 'its own'\n")
    zipapp.create_archive(program, tmp_path / "app.pyz")
    ended = run("-m", "tensorlens", "explain", "-o", "report.txt", "app.pyz", cwd=tmp_path)
    assert (ended.stdout, ended.stderr) == ("its own\n", "")


def test_a_compiled_file_runs_as_in_plain_python(tmp_path: Path) -> None:
    path = script(tmp_path, "import torch\nprint(__file__, torch.ones(1), type(__loader__))\n")
    run("-m", "compileall", "-b", "-q", path, cwd=tmp_path)
    plain = run("program.pyc", cwd=tmp_path)
    ended = run("-m", "tensorlens", "explain", "-o", "trace.json", "program.pyc", cwd=tmp_path)
    assert (ended.stdout, ended.stderr) == (plain.stdout, plain.stderr)
    assert "tensor([1.])" in ended.stdout
    assert len(load(tmp_path / "trace.json").totals) == 1


@pytest.mark.parametrize("kind", ["directory", "zipapp"])
def test_what_has_no_main_is_refused_in_one_line(kind: str, tmp_path: Path) -> None:
    program = tmp_path / "app"
    program.mkdir()
    (program / "helper.py").write_text(HELPER)
    if kind == "zipapp":
        zipapp.create_archive(program, tmp_path / "app.pyz", main="helper:make")
        name = "app.pyz"
        run("-m", "zipfile", "-c", "app.pyz", "app/helper.py", cwd=tmp_path)
    else:
        name = "app"
    ended = run("-m", "tensorlens", "explain", name, cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert re.fullmatch(r"tensorlens: .*\n", ended.stderr)
