"""Writes the output of the program into the console blocks of the README and of docs/second-runs.md.

    python -m tools.readme_output

A block without a line "..." gets the whole output. In another one, each part between such lines begins with a line of
the output, and gets as many lines of the output as it had.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
FILES = (ROOT / "README.md", ROOT / "docs" / "second-runs.md")
BLOCK = re.compile(r"^```console\n\$ (tensorlens [^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
CUT = "..."


def output(command: str) -> str:
    """Runs a command at 80 columns and returns what it prints to standard output."""
    ended = subprocess.run(
        [sys.executable, "-m", *shlex.split(command)],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "80", "LINES": "50", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=600,
        check=False,
    )
    if ended.returncode not in (0, 1):
        raise SystemExit(ended.stderr)
    return re.sub(r"torch (\d+\.\d+\.\d+)\+\w+", r"torch \1", ended.stdout)


def renewed(block: re.Match[str]) -> str:
    """Returns a block with new output."""
    command, real = block[1], output(block[1]).splitlines()
    shown = block[2].splitlines()
    is_whole = shown.count(CUT) == real.count(CUT)  # a finding has such lines too
    shown = real if is_whole else _parts(command, shown, real)
    return "\n".join(["```console", f"$ {command}", *shown, "```"])


def _parts(command: str, shown: list[str], real: list[str]) -> list[str]:
    lines: list[str] = []
    at = 0
    begins = True  # a part
    for line in shown:
        if line == CUT:
            lines.append(CUT)
            begins = True
            continue
        if begins:
            if line not in real[at:]:
                raise SystemExit(f"{command}: its output has no line {line!r}")
            at = real.index(line, at)
            begins = False
        lines.append(real[at])
        at += 1
    return lines


if __name__ == "__main__":
    for file in FILES:
        file.write_text(BLOCK.sub(renewed, file.read_text(encoding="utf-8")), encoding="utf-8")
