"""Holds every module to the design: its size, its imports, its place in the documents."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import tensorlens

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "tensorlens"
MODULES = sorted(PACKAGE.rglob("*.py"))
MAX_LINES = 320
MAX_FUNCTION = 50
LONGER_FUNCTION = {"fast_path.py": 118}  # every op runs through it: one function is faster than several
MAX_PARAMETERS = 6
C_FILES = sorted([*PACKAGE.rglob("*.c"), *PACKAGE.rglob("*.h")])
MAX_C_LINES = 400
MAX_C_FUNCTION = 60

# What runs next to the user's program, where torch is loaded anyway; the table of the probes is read without it.
WITH_TORCH = (
    "tensorlens.tracer", "tensorlens.session", "tensorlens.notebook", "tensorlens.compare.probe", "tensorlens.testing",
)  # fmt: skip
WITHOUT_TORCH_AFTER_ALL = (
    "tensorlens.compare.probe.probes", "tensorlens.compare.probe.measured_text", "tensorlens.testing.plugin",
    "tensorlens.testing.recorded_tests",
)  # fmt: skip
PLAIN = ("tensorlens.records", "tensorlens.journal", "tensorlens.errors", "tensorlens.paths")

each_module = pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def below(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == package or name.startswith(package + ".") for package in packages)


TORCH_FREE = [
    name
    for name in map(name_of, MODULES)
    if not below(name, WITH_TORCH) or below(name, WITHOUT_TORCH_AFTER_ALL)
    if not name.endswith("__main__")
]


@each_module
def test_budgets(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    assert len(text.splitlines()) <= MAX_LINES
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        assert (node.end_lineno or node.lineno) - node.lineno < LONGER_FUNCTION.get(path.name, MAX_FUNCTION), node.name
        if path.name != "command_line.py":  # a command's parameters are its options
            count = len(node.args.posonlyargs) + len(node.args.args) + len(node.args.kwonlyargs)
            assert count <= MAX_PARAMETERS + (node.args.args[:1] != [] and node.args.args[0].arg in ("self", "cls")), (
                node.name
            )


@each_module
def test_every_module_says_what_it_is(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree) or not tree.body


@pytest.mark.parametrize("path", C_FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_c_files_are_short_and_say_what_they_are(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert re.match(r"/\* [A-Z][^/]*\.\s", text)
    assert len(text.splitlines()) <= MAX_C_LINES
    for body in re.findall(r"^\{\n.*?^\}$", text, re.MULTILINE | re.DOTALL):
        assert len(body.splitlines()) <= MAX_C_FUNCTION, body.splitlines()[1]


def test_the_fast_path_includes_each_of_its_files_once() -> None:
    source = PACKAGE / "tracer" / "recording" / "_fast_path.c"
    included = re.findall(r'^#include "(.+)"$', source.read_text(encoding="utf-8"), re.MULTILINE)
    files = source.with_name("fast_path_c").iterdir()
    assert sorted(included) == sorted(path.relative_to(source.parent).as_posix() for path in files)


# A file name means one thing in the whole package. These names are the same subject on two sides.
SAME_SUBJECT = {
    "__init__", "__main__", "callbacks", "changed_after_use", "contexts", "custom_functions", "graph", "hooks",
    "interventions", "manual", "retained_graphs", "user_callbacks",
}  # fmt: skip


def test_a_file_name_means_one_thing() -> None:
    stems = [path.stem for path in MODULES if path.stem not in SAME_SUBJECT]
    assert sorted(stem for stem in set(stems) if stems.count(stem) > 1) == []


def test_no_import_cycles() -> None:
    assert cycles({name_of(path): imported_at_start(path) for path in MODULES}) == []


def test_import_cycles_are_found() -> None:
    assert cycles({"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": set()}) == [["a", "b", "c"]]
    assert cycles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_a_search_in_the_folder_of_a_subject_serves_that_subject() -> None:
    searches = "tensorlens.analysis.training."
    homes = {p.parent.name for p in MODULES if p.parent.parent == PACKAGE / "analysis" / "training"}
    assert homes
    strangers = [
        (name_of(path), name)
        for path in MODULES
        for name in imported_at_start(path)
        if name.startswith(searches) and (home := name.split(".")[3]) in homes and path.parent.name != home
    ]
    assert strangers == []


def imported_at_start(path: Path) -> set[str]:
    """The modules of the package that are imported when a module is: not those imported in functions or for types."""
    known = set(map(name_of, MODULES))
    names: set[str] = set()
    waiting: list[ast.stmt] = list(ast.parse(path.read_text(encoding="utf-8")).body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = (f"{node.module}.{alias.name}" for alias in node.names)
            names.update(part if part in known else str(node.module) for part in parts)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            waiting += [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
    return (names & known) - {name_of(path)}


def cycles(imports: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules that import each other: those that can reach each other and themselves."""
    reached = {name: reachable(name, imports) for name in imports}
    groups = {frozenset(other for other in imports if name in reached[other] and other in reached[name]): None
              for name in imports if name in reached[name]}  # fmt: skip
    return [sorted(group) for group in groups]


def reachable(name: str, imports: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = list(imports.get(name, ()))
    while waiting:
        other = waiting.pop()
        if other not in found:
            found.add(other)
            waiting += imports.get(other, ())
    return found


def loaded_by(*modules: str) -> set[str]:
    """Returns the top-level packages in memory after importing `modules` in a fresh interpreter."""
    code = f"import importlib, sys\nfor name in {modules!r}: importlib.import_module(name)\nprint(*sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    return {name.partition(".")[0] for name in ended.stdout.split()}


BARE = loaded_by("sys")  # what this environment's interpreter has loaded anyway


def test_nothing_outside_the_tracer_imports_torch() -> None:
    assert not loaded_by(*TORCH_FREE) & {"torch", "numpy"}


def test_the_records_need_the_standard_library_alone_and_msgspec_to_read_a_file() -> None:
    plain = [name for name in map(name_of, MODULES) if below(name, PLAIN)]
    readers = ("tensorlens.records.trace_decoder", "tensorlens.records.rank_file")
    assert loaded_by(*plain) - sys.stdlib_module_names - BARE - {"typing_extensions"} == {"tensorlens", "msgspec"}
    plain = [name for name in plain if name not in readers]
    assert loaded_by(*plain) - sys.stdlib_module_names - BARE == {"tensorlens"}


def test_findings_and_analysis_draw_nothing() -> None:
    names = [name for name in TORCH_FREE if below(name, ("tensorlens.analysis", "tensorlens.diagnostics"))]
    assert not loaded_by(*names) & {"torch", "rich", "typer", "click"}


def test_versions_agree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == tensorlens.__version__
    pinned = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    for requirement in project["dependencies"]:
        name = requirement.split(">=")[0]
        assert any(line.startswith(f"{name}==") for line in pinned), name


def test_it_is_typed() -> None:
    assert (PACKAGE / "py.typed").exists()


def test_the_map_for_contributors_has_every_module() -> None:
    told = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
    parts = [f"{path.name}/" if path.is_dir() else path.name for path in PACKAGE.iterdir()]
    hidden = ("__", "py.typed", "scenarios/")
    assert [part for part in parts if not part.startswith(hidden) and f"`{part}`" not in told] == []


def test_the_tests_that_contributors_are_sent_to_exist() -> None:
    told = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
    assert [path for path in re.findall(r"tests/[\w/*]+\.py", told) if not list(ROOT.glob(path))] == []
