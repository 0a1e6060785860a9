"""`make catalogue`: scores every script, prints the table, writes docs/catalogue.md, and records new right answers."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from catalogue.scoring import RIGHT, SCRIPTS, Score, reasons, recorded, score
from support.folders import DOCS
from support.warm import Warm

from tensorlens.render.markdown_text import markdown_table

PROCESSES = 2
DOCUMENT = DOCS / "catalogue.md"
_HEAD = """# What is explained down to the marked lines

Written by `make catalogue`. Each script under `tests/catalogue/scripts` causes one entry of the catalogue by one
mechanism, and marks the lines that play a part in the cause. A script counts as right if the lens gives the entry's
code and a label for every marked part, on marked lines only. `tests/catalogue/right.txt` lists the scripts that are
right; the tests fail if one of them is right no longer. Silent entries raise nothing; `docs/silent.md` says which of
them are reported as warnings, and which as facts.
"""


def main() -> int:
    scores = _all()
    before, now = recorded(), {result.stem for result in scores if result.right}
    text = "\n".join((_HEAD, *_summary(scores), "", *_entries(scores), "", *_misses(scores), ""))
    DOCUMENT.write_text(text)
    print("\n".join(_summary(scores)))
    lost = sorted(before - now)
    RIGHT.write_text("\n".join(sorted(before | now)) + "\n")
    if lost:
        print("no longer right:", *lost, file=sys.stderr)
    return 1 if lost else 0


def _all() -> list[Score]:
    def run(scripts: list[Path]) -> list[Score]:
        with Warm() as warm:
            return [score(script, warm) for script in scripts]

    with ThreadPoolExecutor(PROCESSES) as pool:
        parts = pool.map(run, [SCRIPTS[n::PROCESSES] for n in range(PROCESSES)])
        return sorted((result for part in parts for result in part), key=lambda result: result.stem)


def _summary(scores: list[Score]) -> list[str]:
    groups: dict[tuple[str, int], list[Score]] = defaultdict(list)
    for result in scores:
        groups[result.entry.kind, result.entry.tier].append(result)
    rows = []
    for (kind, tier), results in sorted(groups.items()):
        right = sum(result.right for result in results)
        rows.append((kind, str(tier), str(len(results)), str(right), f"{100 * right / len(results):.0f}"))
    return markdown_table(("kind", "tier", "scripts", "right", "of 100"), rows)


def _entries(scores: list[Score]) -> list[str]:
    """Returns a table with a row per entry with its mechanisms; a mechanism whose script is not right is bold."""
    groups: dict[str, list[Score]] = defaultdict(list)
    for result in scores:
        groups[result.entry.code].append(result)
    rows = []
    for code, results in sorted(groups.items(), key=lambda group: (group[1][0].entry.tier, group[0])):
        known = results[0].entry
        names = ((r.mechanism or "-") if r.right else f"**{r.mechanism or code}**" for r in results)
        right = sum(result.right for result in results)
        rows.append((f"`{code}`", known.kind, str(known.tier), f"{right}/{len(results)}", ", ".join(names)))
    return markdown_table(("code", "kind", "tier", "right", "mechanisms (**not right**)"), rows)


def _misses(scores: list[Score]) -> Iterable[str]:
    known = reasons()
    yield "## Not right, and why"
    yield ""
    for result in scores:
        if not result.right:
            what = f"no label, or a wrong one: {', '.join(result.missing)}" if result.found else "the code is not given"
            yield f"- `{result.stem}`: {what}. {known.get(result.stem, 'Not yet.')}"


if __name__ == "__main__":
    sys.exit(main())
