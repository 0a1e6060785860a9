"""Draws docs/report.svg, the picture at the top of the README: a coloured report of a real run.

python -m tools.report_picture
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).parent.parent
COMMAND = ("explain", "docs/examples/gate.py")
COLUMNS = 90
_FONT_FILES = re.compile(r"\s*@font-face \{.*?\n    \}", re.DOTALL)  # they would be fetched from the network


def report() -> str:
    """Runs the command and returns its coloured output."""
    environment = {**os.environ, "COLUMNS": str(COLUMNS), "LINES": "50", "FORCE_COLOR": "1"}
    environment.pop("NO_COLOR", None)
    ended = subprocess.run(
        [sys.executable, "-m", "tensorlens", *COMMAND],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    if ended.returncode != 1:
        raise SystemExit(f"the script of the picture is meant to fail:\n{ended.stderr}")
    return re.sub(r"torch (\d+\.\d+\.\d+)\+\w+", r"torch \1", ended.stdout)


def picture(text: str) -> str:
    """Returns coloured terminal output as an SVG."""
    console = Console(width=COLUMNS, record=True, file=StringIO(), force_terminal=True, highlight=False)
    console.print(Text.from_ansi(text), soft_wrap=True)
    svg = console.export_svg(title=f"tensorlens {' '.join(COMMAND)}", theme=MONOKAI, unique_id="report")
    return _FONT_FILES.sub("", svg)


if __name__ == "__main__":
    (ROOT / "docs" / "report.svg").write_text(picture(report()), encoding="utf-8")
