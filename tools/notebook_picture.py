"""Draws docs/notebook.png, the picture in docs/notebook.md: a notebook in JupyterLab, in Chromium.

python -m tools.notebook_picture

It needs the packages jupyterlab and playwright. With `--all FOLDER` it draws each cell to a file of that folder
instead, with a light and with a dark theme, and with each page open: to look at.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

ROOT = Path(__file__).parent.parent
CELLS = (
    "import torch\n%load_ext tensorlens\n%xmode Minimal",
    "w = torch.randn(4, 3, requires_grad=True)\nx = torch.randn(8, 4)\ngate = (x @ w).sigmoid()",
    'shown = gate.detach()\nshown.clamp_(0.1, 0.9)  # for the plot\nprint(f"{shown.shape=}")',
    "loss = gate.pow(2).mean()\nloss.backward()",
)
MORE_CELLS = (
    "%tensorlens",
    "%%tensorlens\nloss = (x @ w).sigmoid().pow(2).mean()\nloss.backward()",
    "%tensorlens why gate",
    "%tensorlens help",
)
_DONE = "cells => cells.filter(cell => /\\[\\d+\\]/.test(cell.innerText)).length"
_WIDTH, _HEIGHT = 1010, 2600


def notebook(cells: tuple[str, ...]) -> str:
    """Returns a notebook file with these cells, none of which has run."""
    code: list[dict[str, Any]] = [
        {"cell_type": "code", "id": f"cell-{number}", "source": text, "outputs": [], "metadata": {},
         "execution_count": None}
        for number, text in enumerate(cells)
    ]  # fmt: skip
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return json.dumps({"cells": code, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5})


@contextmanager
def jupyterlab(folder: Path) -> Iterator[str]:
    """Serves a folder. Yields the address of its file notebook.ipynb, without the panels around it."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    options = [f"--port={port}", f"--ServerApp.root_dir={folder}", "--IdentityProvider.token=", "--no-browser",
               "--allow-root", "--LabApp.expose_app_in_browser=True", "--LabApp.news_url="]  # fmt: skip
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen([sys.executable, "-m", "jupyterlab", *options], cwd=folder, stdout=log, stderr=log)
    try:
        for _ in range(240):
            try:
                urlopen(f"http://localhost:{port}/api/status").close()
                break
            except OSError:
                time.sleep(0.5)
        yield f"http://localhost:{port}/doc/tree/notebook.ipynb?reset"
    finally:
        server.terminate()
        server.wait()


def shown(browser: Any, cells: tuple[str, ...], theme: str = "Light") -> Iterator[Any]:
    """Runs the cells of a notebook and yields the page, once."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "notebook.ipynb").write_text(notebook(cells), "utf-8")
        with jupyterlab(folder) as address:
            page = browser.new_page(viewport={"width": _WIDTH, "height": _HEIGHT}, color_scheme="light")
            page.goto(address)
            page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=120_000)
            page.evaluate(
                f"window.jupyterapp.commands.execute('apputils:change-theme', {{theme: 'JupyterLab {theme}'}})"
            )
            page.wait_for_timeout(3000)
            page.click(".jp-Notebook .jp-Cell .jp-InputPrompt")
            for number in range(len(cells)):  # one by one: "run all" ends at an exception
                page.keyboard.press("Shift+Enter")
                for _ in range(400):
                    if page.eval_on_selector_all(".jp-InputPrompt", _DONE) > number:
                        break
                    page.wait_for_timeout(250)
            page.wait_for_timeout(2000)
            yield page
            page.close()


def draw(browser: Any, file: Path) -> None:
    """Draws the cells of the picture."""
    for page in shown(browser, CELLS):
        found = page.query_selector_all(".jp-Notebook .jp-Cell")[: len(CELLS)]
        boxes = [cell.bounding_box() for cell in found]
        top, bottom = boxes[0]["y"], boxes[-1]["y"] + boxes[-1]["height"]
        box = {"x": boxes[0]["x"], "y": top, "width": boxes[0]["width"], "height": bottom - top}
        page.screenshot(path=str(file), clip=box)


def draw_all(browser: Any, folder: Path) -> None:
    """Draws each cell with its output to a file of its own."""
    folder.mkdir(exist_ok=True)
    for theme in ("Light", "Dark"):
        for page in shown(browser, CELLS + MORE_CELLS, theme):
            for summary in page.query_selector_all(".tensorlens summary"):
                summary.click()
            page.wait_for_timeout(2000)
            for number, cell in enumerate(page.query_selector_all(".jp-Notebook .jp-Cell"), 1):
                cell.scroll_into_view_if_needed()
                page.wait_for_timeout(500)
                cell.screenshot(path=str(folder / f"{theme.lower()}_{number}.png"))


def main() -> None:
    from playwright.sync_api import sync_playwright  # type: ignore[import-not-found,unused-ignore]

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        if sys.argv[1:2] == ["--all"]:
            draw_all(browser, Path(sys.argv[2]))
        else:
            draw(browser, ROOT / "docs" / "notebook.png")
        browser.close()


if __name__ == "__main__":
    main()
