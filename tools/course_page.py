"""Writes docs/course.md: the course, with the output of real runs."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
FILE = ROOT / "docs" / "course.md"
ANSWERS = ("[1.0]", "r", "h", "h", "?", "true", "h")  # some are wrong, so that the page shows every kind of reply
QUIZ = f"tensorlens run tensor-basics --quiz --answers {shlex.quote(','.join(ANSWERS))}"

TEXT = """\
# The course

`tensorlens list` shows the lessons in the order in which they build on one another: the properties of a tensor, which
tensors share memory, what the graph is, what a change in place does to it, and the same in a training step. Each lesson
is a short script. There are three ways to go through one.

`tensorlens run NAME` runs it and shows everything at once: what each line did, the tensors, the verdict on each claim.

`tensorlens run NAME --step` goes line by line. Each step shows the script up to a line, what that line did, every named
tensor after it with its storage, and the claims that are checked there. A line that did not run is not a step. Enter
goes on, `b` goes back, a number goes to that step, `w` explains the words, `q` quits. If standard input is not a
terminal, all steps are printed.

`tensorlens run NAME --quiz` shows the script without its comments and asks about each claim before it shows the answer:
whether the claim holds (`h`) or is refuted (`r`), which value an expression has, or whether a line runs (`r`) or ends
in an error (`e`). `?` shows the answer and counts as wrong, `w` explains the words, `q` quits. The quiz negates some
claims, so that "holds" is not always right. It measures every answer in a run just before it asks. At the end it counts
the right answers, shows for each wrong one what was seen in the run, and names a comparison or a page to read.

Both remember where you stop, also with Ctrl-D (exit code 0) or Ctrl-C (130). They save it in `tensorlens/progress.json`
in `$XDG_STATE_HOME` (`~/.local/state` by default). `--restart` starts from the beginning, and so does a lesson that was
edited since. `--answers` takes the place of a person: it names a file with one answer per line, or lists the answers
with commas between them. Without a terminal, a quiz reads its answers from standard input. Scripts of your own with
`#:` lines work the same way: `tensorlens run ./mine.py --quiz`.

Real runs printed all output below. `make course` writes this page, and a test compares it with new runs.

## The lessons

{lessons}
## One step

{steps}
## A quiz

{quiz}"""


def printed(command: str) -> str:
    """Returns the output of a command at 80 columns, without saved progress."""
    with tempfile.TemporaryDirectory() as state:
        environment = {**os.environ, "COLUMNS": "80", "LINES": "50", "NO_COLOR": "1", "XDG_STATE_HOME": state}
        ended = subprocess.run(
            [sys.executable, "-m", *shlex.split(command)],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
    return ended.stdout


def block(command: str, text: str) -> str:
    return f"```console\n$ {command}\n{text}```\n"


def document() -> str:
    """Returns the whole document."""
    steps = printed("tensorlens run detach-write --step")
    fourth = "step 4 of " + steps.partition("\nstep 4 of ")[2].partition("\nstep 5 of ")[0]
    return TEXT.format(
        lessons=block("tensorlens list", printed("tensorlens list")),
        steps=block("tensorlens run detach-write --step", f"...\n{fourth}...\n"),
        quiz=block(QUIZ, printed(QUIZ)),
    )


if __name__ == "__main__":
    FILE.write_text(document(), encoding="utf-8")
