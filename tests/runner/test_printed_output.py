"""The output of a further run is kept up to a limit, and a digest says whether the rest is the same."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from tensorlens.runner import printed_output
from tensorlens.runner.printed_output import MOST_KEPT, Printed, captured_output


def captured(program: str) -> Printed:
    with captured_output() as output:
        subprocess.run([sys.executable, "-c", program], stdout=output.descriptor, check=True)
    return output.printed


def test_short_output_is_kept_whole() -> None:
    assert captured("print('a'); print('b', end='')") == Printed(b"a\nb")
    assert captured("pass") == Printed()
    assert captured("print('x' * 300_000)").head == b"x" * 300_000 + b"\n"


def test_of_long_output_the_first_lines_and_a_digest_are_kept() -> None:
    program = "import sys\nfor n in range(1_200_000): print(f'line {n}')\nprint('LAST')"
    one, same, other = captured(program), captured(program), captured(program.replace("LAST", "last"))
    assert one == same
    assert one.head == other.head
    assert one.rest != other.rest
    assert MOST_KEPT - 20 < len(one.head) < MOST_KEPT
    assert one.lines[-1] == f"line {len(one.lines) - 1}".encode()
    longer = captured(program + "\nprint()")
    assert (longer.head, longer.rest != one.rest) == (one.head, True)


def test_a_process_that_is_left_behind_does_not_hold_up_the_command() -> None:
    begins = time.monotonic()
    child = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', %r]); print('done')"
    assert captured(child % "import time; time.sleep(20)") == Printed(b"done\n")
    flood = "while True: print('x' * 1000)"
    assert captured(child % flood).head.startswith((b"done\n", b"x"))
    assert time.monotonic() - begins < 15


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(printed_output, "MOST_KEPT", 1000)
    with captured_output() as output:
        for _ in range(200):
            os.write(output.descriptor, b"y" * 999 + b"\n")
    assert len(output.printed.head) < 1000
    assert len(output.printed.rest) == 16
