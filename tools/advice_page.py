"""`make advice`: follows the first help for every program, judges it by gradients, and writes docs/advice.md.

`python -m tools.advice_page --only 02,03` prints what becomes of the helps of some programs, and writes nothing.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(_ROOT / "tests"))
os.environ["PYTHONPATH"] = str(_ROOT)  # the processes that run the programs use this checkout too

from advice import programs  # noqa: E402
from advice.judging import VERDICTS, Judgement, judge  # noqa: E402
from advice.programs import CASES, FIRST_TRY, Program, marked_programs  # noqa: E402
from advice.scores import FIRST_SCORES, SCORES, Score, lost, merged, record, recorded, score  # noqa: E402

from tensorlens.render.markdown_text import escaped, markdown_table, marked  # noqa: E402

PROCESSES = 2
DOCUMENT = _ROOT / "docs" / "advice.md"
GROUPS: dict[str, tuple[str, Callable[[], list[Program]]]] = {
    "cases": ("programs with marked causes", lambda: marked_programs(CASES)),
    "first_try": ("programs by an author who had not seen the finders", lambda: marked_programs(FIRST_TRY)),
    "failing": ("`tests/programs/failing`", programs.failing_programs),
    "silent": ("`tests/programs/silent`", programs.silent_programs),
    "pages": ("examples of the manual, tiers 1 and 2", programs.page_examples),
    "catalogue": ("scripts of the catalogue, tiers 1 and 2", programs.catalogue_scripts),
}
_HEAD = """# Is the advice good?

Written by `make advice`. For each program, the first help of the first finding is applied as the report gives it, by a
program and to the letter: only its edits count, in all files that they name. If the edited program fails, the first
help of its next report follows, in at most three rounds. What counts then is not that the error is gone, but the
gradient of every parameter at every step of every optimizer (in a program without an optimizer: at every backward
pass). They have to be those of a version of the program in which the true cause is repaired. Where no such version
exists, and the program fails only because a saved tensor was overwritten, they have to be those of a run that keeps
copies of saved tensors.

- **cured**: the program runs, with the right gradients
- **runs**: the program runs and the finding is gone; there is no version to compare the gradients with
- **changes**: the gradients are others, and the help says so
- **no edit**: the first help is a sentence, without edits
- **no finding**: the lens finds nothing
- **fails**: the program still fails, or the finding is still there
- **HARMFUL**: the program runs, the gradients are not the right ones, and the help does not say so

The cause is right if a label marks a line of the true cause, and no label calls another line the cause. `tests/advice`
has the programs, their repaired versions, and the judge, which runs the edited programs without the lens. The scores in
`tests/advice/scores.json` may only become better: a test fails if one becomes worse.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="beginnings of names, as in 02,03: print these programs, write nothing")
    parser.add_argument("--group", choices=[*GROUPS], help="print the programs of one group, write nothing")
    parser.add_argument("--totals", action="store_true", help="with --group: print one row for the group")
    chosen = parser.parse_args()
    if chosen.only or chosen.group:
        groups = [chosen.group] if chosen.group else [*GROUPS]
        beginnings = tuple((chosen.only or "").split(","))
        wanted = {group: [p for p in GROUPS[group][1]() if p.name.startswith(beginnings)] for group in groups}
        results = judged(wanted)
        if chosen.totals:
            print("\n".join(_totals(results)))
            return 0
        for found in (found for group in results.values() for found in group):
            print("\n".join(_described(found)))
        return 0
    return _recorded(judged({group: read() for group, (_, read) in GROUPS.items()}))


def judged(wanted: dict[str, list[Program]]) -> dict[str, list[Judgement]]:
    """Judges groups of programs, with two judges that work side by side."""

    def part(some: list[tuple[str, Program]]) -> list[tuple[str, Judgement]]:
        with judge() as judging:
            return [(group, judging.judge(program)) for group, program in some]

    every = [(group, program) for group, programs in wanted.items() for program in programs]
    with ThreadPoolExecutor(PROCESSES) as pool:
        found = [pair for some in pool.map(part, [every[n::PROCESSES] for n in range(PROCESSES)]) for pair in some]
    ordered = sorted(found, key=lambda pair: pair[1].program.name)
    return {group: [judgement for of, judgement in ordered if of == group] for group in wanted}


def _described(found: Judgement) -> Iterator[str]:
    labels = ", ".join(f"{role} {file}:{line}" for role, (file, line) in found.labels)
    cause = f"cause {'right' if found.cause else 'NOT RIGHT'}; " if found.program.causes else ""
    yield f"{found.program.name}: {found.code or 'no finding'}; {cause}{labels}"
    for number, outcome in enumerate((found.first, *found.others), start=1):
        remark = f" ({outcome.remark})" if outcome.remark else ""
        yield f"    help {number}: {outcome.verdict}, rounds {outcome.rounds}{remark}: {outcome.help}"


def _recorded(results: dict[str, list[Judgement]]) -> int:
    """Writes the page and the scores; prints what is worse than before."""
    before = recorded()
    scores = {group: {found.program.name: score(found) for found in results[group]} for group in results}
    if scores["first_try"] and not FIRST_SCORES.exists():
        record({"first_try": scores["first_try"]}, FIRST_SCORES)
    DOCUMENT.write_text("\n".join(_page(results)) + "\n", encoding="utf-8")
    record({group: merged(before.get(group, {}), scores[group]) for group in scores}, SCORES)
    print("\n".join(_totals(results)))
    worse = [line for group in scores for line in lost(before.get(group, {}), scores[group])]
    if worse:
        print("worse than before:", *worse, sep="\n", file=sys.stderr)
    return 1 if worse else 0


def _page(results: dict[str, list[Judgement]]) -> Iterator[str]:
    yield _HEAD
    yield from _totals(results)
    yield from ("", "## Programs with marked causes", "")
    yield from _table(results["cases"])
    if results["first_try"]:
        yield from ("", "## Programs by an author who had not seen the finders", "")
        yield "The column *first try* has the first score of each program. It never changes."
        yield ""
        yield from _table(results["first_try"], recorded(FIRST_SCORES).get("first_try", {}))
    yield from ("", "## Other programs", "")
    yield "Of each group, the programs whose first help has an edit and does not cure, or that have a harmful help."
    yield ""
    rest = [found for group in ("failing", "silent", "pages", "catalogue") for found in results[group]]
    yield from _table(
        [found for found in rest if found.first.verdict in ("changes", "fails", "harmful") or found.harmful]
    )


def _totals(results: dict[str, list[Judgement]]) -> list[str]:
    titles = ("programs", "wrong", "cause right", "first help an edit", *VERDICTS[:-1], "**harmful**", "correct: quiet")
    return markdown_table(titles, [row for group, found in results.items() if found for row in [_total(group, found)]])


def _total(group: str, judgements: list[Judgement]) -> tuple[str, ...]:
    wrong = [found for found in judgements if found.program.kind != "correct"]
    correct = [found for found in judgements if found.program.kind == "correct"]
    marks = [found for found in wrong if found.program.causes]
    return (
        GROUPS[group][0],
        str(len(wrong)),
        f"{sum(found.cause for found in marks)}/{len(marks)}" if marks else "",
        str(sum(found.first.verdict not in ("no edit", "no finding") for found in wrong)),
        *(str(sum(found.first.verdict == verdict for found in wrong)) for verdict in VERDICTS[:-1]),
        f"**{sum(found.harmful for found in wrong)}**",
        f"{sum(not found.findings for found in correct)}/{len(correct)}" if correct else "",
    )


def _table(judgements: Iterable[Judgement], first: dict[str, Score] | None = None) -> list[str]:
    extra = () if first is None else ("first try",)
    rows = []
    for found in judgements:
        before = () if first is None else (_short(first.get(found.program.name, {})),)
        rows.append((escaped(found.program.name), f"`{found.code}`" if found.code else "-", *_cells(found), *before))
    return markdown_table(("program", "finding", "cause", "first help", "verdict", "other helps", *extra), rows)


def _cells(found: Judgement) -> tuple[str, ...]:
    if found.program.kind == "correct":
        return ("", "", f"{found.findings} findings" if found.findings else "quiet", "")
    others = ", ".join(dict.fromkeys(_verdict(outcome.verdict) for outcome in found.others))
    rounds = f" in {found.first.rounds} rounds" if found.first.rounds > 1 else ""
    remark = f": {marked(found.first.remark)}" if found.first.remark else ""
    return (_cause(found), marked(found.first.help), f"{_verdict(found.first.verdict)}{rounds}{remark}", others)


def _verdict(verdict: str) -> str:
    return "**HARMFUL**" if verdict == "harmful" else verdict


def _cause(found: Judgement) -> str:
    if not found.program.causes:
        return ""
    wrong = ", ".join(f"{Path(file).stem}:{line}" for file, line in sorted(found.wrongly_blamed))
    named = "right" if found.names_cause else "not named"
    return f"{named}, and blames {escaped(wrong)}" if wrong else named


def _short(score: Score) -> str:
    if "quiet" in score:
        return "quiet" if score["quiet"] else "not quiet"
    return f"cause {'right' if score.get('cause') else 'not right'}, {_verdict(score.get('help', '-'))}"


if __name__ == "__main__":
    sys.exit(main())
