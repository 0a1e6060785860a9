"""Draws docs/page.png, the picture in docs/page.md: the page of a real run, in Chromium.

python -m tools.page_picture
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
SCRIPT = "docs/examples/gan_step.py"


def page(folder: Path) -> Path:
    """Runs the script and returns its page."""
    file = folder / "page.html"
    command = [sys.executable, "-m", "tensorlens", "explain", SCRIPT, "-o", str(file)]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if not file.exists():
        raise SystemExit(f"no page was written: {' '.join(command)}")
    return file


def main() -> None:
    from playwright.sync_api import sync_playwright  # type: ignore[import-not-found,unused-ignore]

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        shown = browser.new_page(viewport={"width": 1400, "height": 900}, color_scheme="light")
        shown.goto(page(Path(folder)).as_uri())
        shown.wait_for_selector("html.drawn", state="attached")
        shown.screenshot(path=str(ROOT / "docs" / "page.png"))
        browser.close()


if __name__ == "__main__":
    main()
