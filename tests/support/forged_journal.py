"""Reads journals whose rows are well-formed but make no sense: numbers without a record, cyclic or gigantic numbers,
rows in the wrong order. A test runs it as a program, with a limit of memory:

    python -m support.forged_journal JOURNAL FOLDER SEED…
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path
from typing import Any

from tensorlens.cli.output import Output
from tensorlens.cli.rendered_report import rendered_report
from tensorlens.journal.batches import pack, unpack
from tensorlens.journal.reader import Reader
from tensorlens.records.model import Script
from tensorlens.runner.follow import JournalFollower, trace_of

INTEGERS = (-1, -2, 0, 1, 2, 7, 2**31, 2**62, -(2**63), 10**30)
SECONDS = 20.0


def main() -> None:
    journal, folder, *seeds = sys.argv[1:]
    with open(journal, "rb") as stream:
        rows = [row for batch in unpack(stream) for row in batch]
    for seed in seeds:
        started = time.monotonic()
        text = report_text(forged(rows, random.Random(int(seed))), Path(folder) / "forged")
        assert text.strip(), seed
        assert time.monotonic() - started < SECONDS, seed


def report_text(rows: list[Any], path: Path) -> str:
    """Returns the report of a journal, made as the command makes it."""
    path.write_bytes(pack(rows))
    reader = Reader(Script("forged.py", (), "", "killed", None, None))
    with path.open("rb", buffering=0) as stream, JournalFollower(reader, stream):
        pass
    return rendered_report(trace_of(reader, reader.script), Output()).text


def forged(rows: list[Any], chance: random.Random) -> list[Any]:
    made = list(rows)
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(made))
        other = chance.randrange(len(made))
        how = chance.choice(("number", "number", "number", "swap", "repeat", "drop", "borrow"))
        if how == "number":
            made[place] = changed(made[place], chance)
        elif how == "swap":
            made[place], made[other] = made[other], made[place]
        elif how == "repeat":
            made[other:other] = made[place : place + 3]
        elif how == "drop":
            del made[place]
        else:
            made[place] = made[other]
    return made


def changed(item: Any, chance: random.Random) -> Any:
    """Replaces one of the integers in `item`, at any depth, except its tag."""
    if type(item) is int:
        return chance.choice((*INTEGERS, item + 1, chance.randrange(100)))
    places = [n for n, part in enumerate(item) if type(part) is int or (type(part) is tuple and part)]
    places = [n for n in places if n or type(item[0]) is not int or len(item) == 1]
    if type(item) is not tuple or not places:
        return item
    place = chance.choice(places)
    return (*item[:place], changed(item[place], chance), *item[place + 1 :])


if __name__ == "__main__":
    main()
