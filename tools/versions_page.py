"""`make versions`: runs the catalogue, pages, programs and lessons in an environment of each PyTorch release, one after
the other, and writes docs/versions.md.

    python -m tools.versions_page                                 # every release of the range
    python -m tools.versions_page 2.6.0 2.15.0                    # these, each with its Pythons
    python -m tools.versions_page --sample 3                      # one in three scripts of the catalogue and pages
    python -m tools.versions_page --python venv/bin/python        # in an environment that is there already

Each environment takes some 6 GB and is removed afterwards; `uv` makes it if it is installed, else `pip`. What a run has
found stays in tools/versions.json, so that the releases may be run one at a time; the page has a row for each that was.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "versions.md"
RESULTS = ROOT / "tools" / "versions.json"
MEASURED = ROOT / "tensorlens" / "runner" / "measured_releases.txt"
RELEASES = [
    ("2.6.0", "3.11"), ("2.7.1", "3.12"), ("2.8.0", "3.13"), ("2.9.1", "3.13"), ("2.10.0", "3.11"), ("2.11.0", "3.13"),
    ("2.12.0", "3.13"), ("2.13.0", "3.11"), ("2.14.0", "3.13"), ("2.15.0", "3.11"), ("2.15.0", "3.13"),
    ("2.15.0", "3.14"),
]  # fmt: skip
"""The releases, each with a Python that it supports."""
GROUPS = {
    "Catalogue": ["tests/diagnostics/test_catalogue.py"],
    "Pages": ["tests/diagnostics/test_pages.py"],
    "Programs": ["tests/diagnostics/test_programs.py"],
    "Lessons": ["tests/lessons/test_scenarios.py", "tests/lessons/test_claims.py"],
    "README": ["tests/test_readme.py"],
}
TESTED_WITH = "typer rich pytest pytest-xdist hypothesis numpy jsonschema expecttest hatchling setuptools".split()
_ABOUT = """
import json, sys, torch
from tensorlens.tracer.recording.compiled import FastPath
print(json.dumps([torch.__version__, sys.version.split()[0], FastPath is not None]))
"""
RIGHT = "test_what_was_right_is_right"
Result = dict[str, Any]

HEAD = """# The releases of PyTorch

Written by `make versions`, which builds an environment for each release, runs the tests of the catalogue, of the pages'
examples, of the programs, of the lessons and of this project's README there, and removes it. All runs are on CPU.

A number is the tests that passed. "Scripts" says how many of the catalogue's scripts and of the pages were run;
programs, lessons and README are always run whole. "Recorder" is what recorded the calls: the compiled file, or the same
in Python. "Without" counts the tests that were skipped because the release does something otherwise than 2.13.0, whose
words the pages quote; the reasons are below the table. "Tier 1" and "tier 2" are the scripts of the catalogue whose
cause is found to its lines, of those that were run and were right when the score was last recorded. A test that failed
is run again, alone: a busy machine exceeds time limits. "(2 at ...)": this happened to 2 tests, at a later commit.

"""
COLUMNS = ["torch", "Python", "Commit", "Recorder", "Scripts", *GROUPS, "Without", "Failed", "Tier 1", "Tier 2"]


def measure(python: Path, one_in: int, workers: int) -> Result:
    """Runs the tests in an environment, and returns their counts. `one_in`: of so many scripts and pages."""
    commit = _commit()
    cases = _run(python, [f"-n{workers}", f"--one-in={one_in}"], [file for group in GROUPS.values() for file in group])
    text = subprocess.run(
        [str(python), "-c", _ABOUT], capture_output=True, text=True, check=True, cwd="/", env=_environment()
    ).stdout
    torch, version, is_compiled = json.loads(text)
    about = {"torch": torch, "python": version, "commit": commit, "compiled": is_compiled, "one_in": one_in}
    return again(python, about | _counted(cases))


def again(python: Path, result: Result) -> Result:
    """Runs the tests that failed a second time, one after the other: a busy machine exceeds time limits."""
    ids = [_test_id(name) for name in result["failed"]]
    second = _counted(_run(python, ["-n0"], ids)) if ids else _counted([])
    for group, count in second["passed"].items():
        result["passed"][group] = result["passed"].get(group, 0) + count
    for tier, (right, _) in second["tiers"].items():
        result["tiers"][tier][0] += right
    for reason, names in second["reasons"].items():
        result["reasons"].setdefault(reason, []).extend(names)
    commit = _commit()
    if ids and commit not in result["commit"]:
        result["commit"] += f" ({len(ids)} at {commit})"
    return result | {"failed": second["failed"]}


def _test_id(name: str) -> str:
    group, _, test = name.partition(": ")
    function = f"def {test.partition('[')[0]}("
    return next(f"{file}::{test}" for file in GROUPS[group] if function in (ROOT / file).read_text(encoding="utf-8"))


def _run(python: Path, options: list[str], tests: list[str]) -> list[ElementTree.Element]:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        common = ["-q", "-p", "no:cacheprovider", "-p", "tools.one_in", f"--junitxml={report}"]
        command = [str(python), "-m", "pytest", *common, *options, *tests]
        subprocess.run(command, cwd=ROOT, env=_environment(), check=False)
        return list(ElementTree.parse(report).iter("testcase"))


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


def _commit() -> str:
    """Returns the commit of this checkout, with a "+" if what is tested differs from it; "" where this is none."""
    if shutil.which("git") is None:
        return ""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()
    tested = ["git", "diff", "--quiet", "HEAD", "--", "tensorlens", "tests", ":!*.txt"]
    return commit + "+" * (subprocess.run(tested, cwd=ROOT, check=False).returncode == 1)


def _counted(cases: list[ElementTree.Element]) -> Result:
    passed = dict.fromkeys(GROUPS, 0)
    tiers: dict[str, list[int]] = {"1": [0, 0], "2": [0, 0]}
    failed: list[str] = []
    reasons: dict[str, list[str]] = {}
    for case in cases:
        group = next(name for name, files in GROUPS.items() if _file(case) in files)
        name = case.get("name", "")
        skipped = case.find("skipped")
        ends_well = skipped is None and case.find("failure") is None and case.find("error") is None
        passed[group] += ends_well
        if name.startswith(RIGHT):
            _count_tier(tiers, name, ends_well)
        if skipped is not None:
            reason = re.sub(r"^torch [\d.]+: ", "", skipped.get("message", ""))
            reasons.setdefault(reason, []).append(f"{group}: {name}")
        elif not ends_well:
            failed.append(f"{group}: {name}")
    return {"passed": passed, "failed": failed, "reasons": reasons, "tiers": tiers}


def _file(case: ElementTree.Element) -> str:
    return case.get("classname", "").replace(".", "/") + ".py"


def _count_tier(tiers: dict[str, list[int]], name: str, ends_well: bool) -> None:
    from tensorlens.records.error_messages import entry

    known = entry(name.partition("[")[2].rstrip("]").partition("--")[0])
    if known is not None and str(known.tier) in tiers and known.kind != "silent":
        tiers[str(known.tier)][0] += ends_well
        tiers[str(known.tier)][1] += 1


def build(release: str, version: str, folder: Path) -> Path:
    """Makes an environment with a release of PyTorch and of Python in `folder`, and returns its interpreter."""
    inside = folder / "bin" / "python"
    pinned = folder / "constraints.txt"  # not what a release of PyTorch pins itself
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    own = re.compile(r"(torch|sympy|networkx|fsspec|filelock|mpmath|jinja2|markupsafe|typing_extensions)==", re.I)
    wanted = ["-q", "-c", str(pinned), f"torch=={release}", *TESTED_WITH]
    uv = shutil.which("uv")
    if uv is not None:
        environment, install = [uv, "venv", "-q", "-p", version], [uv, "pip", "install", "-p", str(inside), *wanted]
    else:
        environment, install = [_interpreter(version), "-m", "venv"], [str(inside), "-m", "pip", "install", *wanted]
    subprocess.run([*environment, str(folder)], check=True)
    pinned.write_text("\n".join(line for line in lines if not own.match(line)))
    subprocess.run(install, check=True)
    subprocess.run([str(inside), "hatch_build.py"], cwd=ROOT, check=False)  # without a compiler: the same in Python
    return inside


def _interpreter(version: str) -> str:
    for name in (f"python{version}", sys.executable):
        found = shutil.which(name)
        shown = subprocess.run([found, "-V"], capture_output=True, text=True, check=False).stdout if found else ""
        if found and shown.startswith(f"Python {version}."):
            return found
    raise SystemExit(f"there is no python{version} on this machine")


def page(results: dict[str, Result]) -> str:
    """Returns the text of docs/versions.md."""
    text = HEAD + _row(COLUMNS) + _row(["---"] * len(COLUMNS))
    for result in results.values():
        passed = [result["passed"].get(group, "not run") for group in GROUPS]
        without = sum(map(len, result["reasons"].values()))
        scores = [f"{right} of {all_}" for right, all_ in result["tiers"].values()]
        recorder = "compiled" if result["compiled"] else "Python"
        scripts = "all" if result["one_in"] == 1 else f"1 in {result['one_in']}"
        about = [result["torch"], result["python"], result["commit"], recorder, scripts]
        text += _row([*about, *passed, without, len(result["failed"]), *scores])
    others = [f"{release} on Python {python}" for release, python in RELEASES if f"{release} {python}" not in results]
    if others:
        text += f"\nNot run: {', '.join(others)}.\n"
    for result in results.values():
        text += _differences(result)
    return text


def _row(cells: list[Any]) -> str:
    return f"| {' | '.join(map(str, cells))} |\n"


def _differences(result: Result) -> str:
    lines = [
        f"- {reason} ({len(names)}): {_named(names)}"
        for reason, names in sorted(result["reasons"].items(), key=lambda item: (-len(item[1]), item[0]))
    ]
    lines += [f"- Failed: {name}" for name in result["failed"]]
    heading = f"{_release(result)} on Python {result['python']}"
    return f"\n## {heading}\n\n" + "\n".join(lines or ["Every test passes."]) + "\n"


def _named(names: list[str]) -> str:
    codes = Counter(match[1] if (match := re.search(r"\[(.*)\]", name)) else name for name in names)
    return ", ".join(f"`{code}`" for code in sorted(codes))


def _release(result: Result) -> str:
    return str(result["torch"].partition("+")[0])


def _order(result: Result) -> list[int]:
    return [int(part) for part in f"{_release(result)}.{result['python']}".split(".")]


def _keep(result: Result) -> None:
    """Adds a result to those of other releases, and writes the page."""
    results: dict[str, Result] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    results[f"{_release(result)} {result['python'].rpartition('.')[0]}"] = result
    results = dict(sorted(results.items(), key=lambda item: _order(item[1])))
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    write(results)


def write(results: dict[str, Result]) -> None:
    """Writes the page, and the list of releases that need no check."""
    PAGE.write_text(page(results), encoding="utf-8")
    MEASURED.write_text("".join(f"{pair}\n" for pair in results))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = [release for release, _ in RELEASES]
    parser.add_argument("releases", nargs="*", choices=[*known, []], help="the releases to run")
    parser.add_argument("--python", type=Path, help="run in this environment instead")
    parser.add_argument("--sample", type=int, default=1, metavar="N", help="run one in N scripts and pages")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="run so many tests side by side")
    parser.add_argument("--again", metavar="ROW", help='run what failed in a row again, "2.15.0 3.13", with --python')
    chosen = parser.parse_args()
    if chosen.again:
        results = json.loads(RESULTS.read_text())
        _keep(again(chosen.python.absolute(), results[chosen.again]))
        return
    if chosen.python is not None:
        _keep(measure(chosen.python.absolute(), chosen.sample, chosen.workers))
        return
    for release, version in RELEASES:
        if release not in (chosen.releases or known):
            continue
        folder = Path(tempfile.mkdtemp(prefix=f"torch-{release}-"))
        try:
            _keep(measure(build(release, version, folder), chosen.sample, chosen.workers))
        finally:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
