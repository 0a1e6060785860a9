"""The report is made while the program's process winds down, and made again where the program had more to say."""

from __future__ import annotations

import textwrap
from pathlib import Path

from tensorlens.records.model import Call, Trace
from tensorlens.runner.launch import RunOptions, Target, run_and_report

LEAVES_SLOWLY = """
    import atexit, pathlib, time
    import torch

    def last():
        until = time.monotonic() + 60
        while not pathlib.Path({told!r}).exists() and time.monotonic() < until:
            time.sleep(0.05)
        {last}

    atexit.register(last)
    torch.ones(2)
"""


def told(folder: Path, last: str = "pass", fails_first: bool = False) -> tuple[list[list[str]], list[str]]:
    """The ops of each trace that was told, and those of the one that was given back, of a program that does `last`
    once it has been told of."""
    mark = folder / "told"
    every: list[list[str]] = []

    def tell(trace: Trace) -> list[str]:
        every.append([event.op for event in trace.events if isinstance(event, Call)])
        mark.touch()
        if fails_first and len(every) == 1:
            raise ValueError
        return every[-1]

    script = folder / "slow.py"
    script.write_text(textwrap.dedent(LEAVES_SLOWLY).format(told=str(mark), last=last), encoding="utf-8")
    return every, run_and_report(Target("file", str(script)), RunOptions(timeout=100), lambda: tell)


def test_it_is_told_before_the_process_is_gone(tmp_path: Path) -> None:
    every, answer = told(tmp_path, f"pathlib.Path({str(tmp_path / 'late')!r}).touch(exist_ok=False)")
    assert (tmp_path / "late").exists()
    assert every == [["torch.ones"]]
    assert answer is every[0]


def test_what_comes_after_the_last_line_is_told_too(tmp_path: Path) -> None:
    every, answer = told(tmp_path, "torch.zeros(3)")
    assert every == [["torch.ones"], ["torch.ones", "torch.zeros"]]
    assert answer is every[1]


def test_an_exit_status_that_changes_on_the_way_out_is_told(tmp_path: Path) -> None:
    every, answer = told(tmp_path, "import os; os._exit(7)")
    assert len(every) == 2
    assert answer is every[1]


def test_what_fails_while_it_winds_down_is_tried_again(tmp_path: Path) -> None:
    every, answer = told(tmp_path, fails_first=True)
    assert every == [["torch.ones"], ["torch.ones"]]
    assert answer is every[1]
