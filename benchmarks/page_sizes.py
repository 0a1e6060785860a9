"""Measures the page of `-o report.html`: its size, and how long Chromium takes to open it."""

from __future__ import annotations

import importlib
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.scale import ROOT
from tensorlens.render.markdown_text import markdown_table

HERE = Path(__file__).parent
LONG_CALLS = 1_000_000
QUICK_CALLS = 100_000
OPENINGS = 5
# From the document that is read to the page that is drawn, in milliseconds. Set before any script of the page runs.
_WATCH = """
document.addEventListener("DOMContentLoaded", () => { window.readAt = performance.now(); });
new MutationObserver(() => {
  if (document.documentElement?.classList.contains("drawn")) window.drawnAt ??= performance.now();
}).observe(document, { subtree: true, attributes: true, attributeFilter: ["class"] });
"""


def page_sizes(quick: bool) -> str:
    """Returns the section; without a browser, its column says that nothing was measured."""
    calls = QUICK_CALLS if quick else LONG_CALLS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        programs = {
            "docs/examples/gan_step.py": ["explain", str(ROOT / "docs/examples/gan_step.py")],
            "the lesson `detach`": ["run", "detach"],
            "1,000 parameters, 100 iterations": ["explain", str(HERE / "many_parameters.py"), "1000", "100"],
            f"a loop of {calls:,} calls": ["explain", str(HERE / "long_run.py"), str(calls), str(folder / "times")],
        }
        pages = {name: _page(folder / f"{place}.html", words) for place, (name, words) in enumerate(programs.items())}
        times = _opening_times([*pages.values()])
        rows = [
            (name, f"{file.stat().st_size / 1e3:,.0f}", times.get(file, "not measured: no Chromium"))
            for name, file in pages.items()
        ]
    return "\n".join(
        (
            "## The page",
            "",
            "The file of `-o report.html`, and how long Chromium takes from its parsed text to the drawn page: the",
            f"median of {OPENINGS} openings, without a screen.",
            "",
            *markdown_table(("", "size, kB", "opens in, ms"), rows),
        )
    )


def _page(file: Path, words: list[str]) -> Path:
    command, *rest = words
    run = [sys.executable, "-m", "tensorlens", command, "-o", str(file), *rest]
    subprocess.run(run, cwd=file.parent, capture_output=True, check=False)  # an example fails on purpose
    if not file.exists():
        raise SystemExit(f"no page was written by: {' '.join(run)}")
    return file


def _opening_times(files: list[Path]) -> dict[Path, str]:
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    try:
        playwright = importlib.import_module("playwright.sync_api")
    except ImportError:
        return {}
    if chromium is None:
        return {}
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        found = {
            file: f"{statistics.median(_opening_time(browser, file) for _ in range(OPENINGS)):.0f}" for file in files
        }
        browser.close()
    return found


def _opening_time(browser: Any, file: Path) -> float:
    context = browser.new_context(viewport={"width": 1600, "height": 1000})
    page = context.new_page()
    page.add_init_script(_WATCH)
    page.goto(file.as_uri())
    page.wait_for_function("window.drawnAt", timeout=120_000)
    elapsed: float = page.evaluate("window.drawnAt - window.readAt")
    context.close()
    return elapsed
