"""`make versions`: runs the catalogue, pages, programs and lessons in an environment of each PyTorch release, one after
the other, and writes docs/versions.md.

    python -m tools.versions_page                                 # every release of the range
    python -m tools.versions_page 2.6.0 2.15.0                    # these
    python -m tools.versions_page --python venv/bin/python        # in an environment that is there already

Each environment takes some 6 GB and is removed afterwards. What a run has found stays in tools/versions.json, so that
the releases may be run one at a time; the page has a row for each that was.
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
PYTHONS = {
    "2.6.0": "3.11", "2.7.1": "3.12", "2.8.0": "3.13", "2.9.1": "3.13", "2.10.0": "3.11", "2.11.0": "3.13",
    "2.12.0": "3.13", "2.13.0": "3.11", "2.14.0": "3.13", "2.15.0": "3.11",
}  # fmt: skip
"""The releases, each with a Python that it supports."""
GROUPS = {
    "Catalogue": ["tests/diagnostics/test_catalogue.py"],
    "Pages": ["tests/diagnostics/test_pages.py"],
    "Programs": ["tests/diagnostics/test_programs.py"],
    "Lessons": ["tests/lessons/test_scenarios.py", "tests/lessons/test_claims.py"],
}
TESTED_WITH = "typer rich pytest pytest-xdist hypothesis numpy jsonschema expecttest".split()
RIGHT = "test_what_was_right_is_right"
Result = dict[str, Any]

HEAD = """# The releases of PyTorch

Written by `make versions`, which builds an environment for each release, runs the tests of the catalogue, of the pages'
examples, of the programs and of the lessons there, and removes it. All runs are on CPU.

A number is the tests that passed. "Without" counts those that were skipped because the release does something
otherwise than 2.13.0, whose words the pages quote; the reasons are below the table. "Tier 1" and "tier 2" are the
scripts of the catalogue whose cause is found to its lines, of those that were right when the score was last recorded.

| torch | Python | Catalogue | Pages | Programs | Lessons | Without | Failed | Tier 1 | Tier 2 |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""


def measure(python: Path) -> Result:
    """Runs the tests in an environment, and returns their counts."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        files = [file for group in GROUPS.values() for file in group]
        command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *files]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        subprocess.run(command, cwd=ROOT, env=environment, check=False)
        cases = list(ElementTree.parse(report).iter("testcase"))
    text = "import sys, torch; print(torch.__version__, sys.version.split()[0])"
    printed = subprocess.run([str(python), "-c", text], capture_output=True, text=True, check=True, cwd="/")
    torch, version = printed.stdout.split()
    return {"torch": torch, "python": version} | _counted(cases)


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


def build(release: str, folder: Path) -> Path:
    """Makes an environment with a release in `folder`, and returns its interpreter."""
    python = shutil.which(f"python{PYTHONS[release]}") or sys.executable
    subprocess.run([python, "-m", "venv", str(folder)], check=True)
    inside = folder / "bin" / "python"
    pinned = folder / "constraints.txt"  # not what a release of PyTorch pins itself
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    own = re.compile(r"(torch|sympy|networkx|fsspec|filelock|mpmath|jinja2|markupsafe|typing_extensions)==", re.I)
    pinned.write_text("\n".join(line for line in lines if not own.match(line)))
    install = [str(inside), "-m", "pip", "install", "-q", "-c", str(pinned), f"torch=={release}", *TESTED_WITH]
    subprocess.run(install, check=True)
    return inside


def page(results: dict[str, Result]) -> str:
    """Returns the text of docs/versions.md."""
    text = HEAD
    ran = sorted(results, key=_order)
    for release in ran:
        result = results[release]
        passed, tiers = result["passed"], result["tiers"]
        without = sum(map(len, result["reasons"].values()))
        scores = [f"{right} of {all_}" for right, all_ in tiers.values()]
        cells = [result["torch"], result["python"], *(passed[group] for group in GROUPS), without]
        text += "| " + " | ".join(map(str, [*cells, len(result["failed"]), *scores])) + " |\n"
    others = [release for release in PYTHONS if release not in results]
    if others:
        text += f"\nNot run: {', '.join(others)}.\n"
    for release in ran:
        text += _differences(release, results[release])
    return text


def _differences(release: str, result: Result) -> str:
    lines = [
        f"- {reason} ({len(names)}): {_named(names)}"
        for reason, names in sorted(result["reasons"].items(), key=lambda item: (-len(item[1]), item[0]))
    ]
    lines += [f"- Failed: {name}" for name in result["failed"]]
    return f"\n## {release}\n\n" + "\n".join(lines or ["Every test passes."]) + "\n"


def _named(names: list[str]) -> str:
    codes = Counter(match[1] if (match := re.search(r"\[(.*)\]", name)) else name for name in names)
    return ", ".join(f"`{code}`" for code in sorted(codes))


def _order(release: str) -> list[int]:
    return [int(part) for part in release.split(".")]


def _keep(result: Result) -> None:
    """Adds a result to those of other releases, and writes the page."""
    results: dict[str, Result] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    results[result["torch"].partition("+")[0]] = result
    RESULTS.write_text(json.dumps(dict(sorted(results.items(), key=lambda item: _order(item[0]))), indent=1) + "\n")
    PAGE.write_text(page(results), encoding="utf-8")
    MEASURED.write_text("".join(f"{release}\n" for release in sorted(results, key=_order)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("releases", nargs="*", choices=[*PYTHONS, []], help="the releases to run")
    parser.add_argument("--python", type=Path, help="run in this environment instead")
    chosen = parser.parse_args()
    if chosen.python is not None:
        _keep(measure(chosen.python.absolute()))
        return
    for release in chosen.releases or PYTHONS:
        folder = Path(tempfile.mkdtemp(prefix=f"torch-{release}-"))
        try:
            _keep(measure(build(release, folder)))
        finally:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
