"""`make advice`: follows the first help for every program, judges by gradients, and writes docs/advice.md."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

_ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(_ROOT / "tests"))
os.environ["PYTHONPATH"] = str(_ROOT)  # the processes that run the programs use this checkout too

from advice.judging import judge
from advice.programs import CASES, programs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="numbers of programs, as in 02,03: print their rows, write nothing")
    only = tuple(filter(None, parser.parse_args().only.split(",")))
    with judge() as judging:
        for program in programs(CASES):
            if not only or program.name.startswith(only):
                found = judging.judge(program)
                cause = "right" if found.cause else "NOT RIGHT"
                print(f"{found.name}: {found.code or 'no finding'}; cause {cause} ({found.labels})")
                for number, outcome in enumerate((found.first, *found.others), start=1):
                    print(f"    {number}: {outcome.verdict}, round {outcome.rounds}; {outcome.help}; {outcome.remark}")
                sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
