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
ANSWERS = ("[1.0]", "r", "h", "h", "?", "true", "h")  # those of a reader who met the lesson for the first time
QUIZ = f"tensorlens run tensor-basics --quiz --answers {shlex.quote(','.join(ANSWERS))}"

TEXT = """\
# The course

`tensorlens list` shows the lessons in the order in which they build on one another: what a tensor says of itself, which
tensors share memory, what the graph is, what a change in place does to it, and the same in a training step. Each is a
short script. There are three ways to go through one.

`tensorlens run NAME` runs it and shows all at once: what each line did, the tensors, the verdict on each claim.

`tensorlens run NAME --step` goes line by line. Each step shows the script up to a line, what that line did, every named
tensor after it with the memory that it is in, and the claims that are checked there. A line that did not run is no
step. Enter goes on, `b` goes back, a number goes to a step, `w` explains the words, `q` quits. Where standard input is
no terminal, all steps are printed.

`tensorlens run NAME --quiz` shows the script without its comments and asks, claim by claim, before it answers: whether
the claim holds (`h`) or is refuted (`r`), which value an expression has, or whether a line runs (`r`) or ends in an
error (`e`). `?` shows the answer and counts as wrong, `w` explains the words, `q` quits. Some claims are asked the
other way round, so that "holds" is not always right. Every answer was measured in a run just before. At the end the
quiz counts, shows what was seen where an answer was wrong, and names a comparison or a page to read.

Both keep the place where they are left, also by Ctrl-D (exit code 0) or Ctrl-C (130), in `tensorlens/progress.json`
below `$XDG_STATE_HOME` (`~/.local/state` by default). `--restart` begins again; so does a change of the lesson.
`--answers` gives the answers instead of a person: a file with one a line, or a list with commas. Without a terminal, a
quiz reads its answers from standard input. Scripts of your own with `#:` lines work the same way:
`tensorlens run ./mine.py --quiz`.

All that is below was printed by real runs (`make course` writes it anew, and a test compares).

## The lessons

{lessons}
## One step

{steps}
## A quiz

{quiz}"""


def printed(command: str) -> str:
    """Returns the output of a command at 80 columns, without saved progress."""
    with tempfile.TemporaryDirectory() as state:
        environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "XDG_STATE_HOME": state}
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
