"""Judges a run with a fix: is the finding gone, and are the gradients right?

The oracle is the same program with copies of what autograd saves, and with every graph kept: it has the gradients of
the forward passes that were computed. A fix is verified if the program then trains with exactly those.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, zip_longest
from typing import Literal

from tensorlens.records.error_messages import entry
from tensorlens.records.reference import MOST_SAMPLED, compare, start_alike
from tensorlens.records.report import Diagnostic
from tensorlens.trials.consumed_gradients import difference, harm, inexact, untrained
from tensorlens.trials.observed_run import ObservedRun

NO_REPEAT = "the program does not repeat itself: two runs with nothing changed differ, so no gradients are compared"


@dataclass(frozen=True, slots=True)
class Judgement:
    """The result of a trial.

    `verified`: the gradients are right. `runs`: the program runs, and `differs` says how it is not the same. `fails`:
    the finding is still there, or another one. `harms`: the program runs and trains with less, or with what is wrong.
    `hidden`: an error that ends the program before says nothing about this finding.
    """

    result: Literal["verified", "runs", "fails", "harms", "hidden"]
    differs: str = ""
    uncovers: bool = False  # the finding is gone, and the next one appears
    is_worse: bool = False  # a parameter of an optimizer never has a gradient


class Judge:
    """Compares runs with the oracle.

    `repeated` makes the run of the oracle once more; `recorded`, one that records gradients at the cut of a finding, if
    it names one: the oracle of a graph that is cut.
    """

    def __init__(
        self,
        first: ObservedRun,
        oracle: ObservedRun,
        repeated: Callable[[], ObservedRun],
        recorded: Callable[[Diagnostic], ObservedRun | None],
    ) -> None:
        self._first, self._oracle, self._repeated, self._recorded = first, oracle, repeated, recorded
        self._recordings: dict[int, ObservedRun | None] = {}  # by id of the finding

    @cached_property
    def _repetition(self) -> ObservedRun:
        return self._repeated()

    @cached_property
    def repeats(self) -> bool:
        """Says if two runs of the program with nothing changed train with the same gradients."""
        again = compare(self._first.passes, self._oracle.passes)
        if not again.differences and "the two runs are different" in again.reason:
            return False
        if not self._starts_as_first:
            return False
        other = self._repetition
        if other.ending != self._oracle.ending or len(other.passes) != len(self._oracle.passes):
            return False
        return not difference(other, self._oracle)

    @cached_property
    def _starts_as_first(self) -> bool:
        """Says if the first backward pass starts from the same values in the first run and in the oracle: a program
        may read other input when it runs again."""
        first, oracle = self._first.passes, self._oracle.passes
        return not first or not oracle or start_alike(first[0], oracle[0])

    @cached_property
    def _oracle_is_right(self) -> bool:
        """Says if the oracle does what the first run should have done: it runs past its error, or has other
        gradients."""
        oracle, first = self._oracle, self._first
        if not (oracle.ended_well and oracle.is_sampled):
            return False
        if len(oracle.trace.failures) < len(first.trace.failures):
            return True
        return bool(compare(first.passes, oracle.passes).differences)

    def judge(self, target: Diagnostic, run: ObservedRun, copied: Callable[[], ObservedRun]) -> Judgement:
        """Judges a run with a fix for `target`. `copied` makes the same run with copies of what autograd saves."""
        if not run.ended_well:
            return self._failed(target, run)
        is_new = bool(self._new_findings(target, run))
        missing = "another finding" if is_new else self._compared(target, run)
        if not missing and not self._starts_as_first:
            missing = NO_REPEAT
        if not missing:
            return Judgement("verified", _limit(run))
        is_known = self._oracle_is_right or not self._first.ended_well  # else the program as it is may be wrong there
        before = self._oracle if self.repeats and self._oracle.passes else self._first
        if text := harm(run, before, more_passes=not is_known):
            return Judgement("harms" if is_known else "fails", text)
        if is_new:
            return self._failed(target, run)
        if not self.repeats:
            return Judgement("runs", NO_REPEAT)
        again = copied()
        if not again.ended_well:
            return Judgement("fails", "the run with copies does not end normally")
        if text := inexact(run, again):
            is_own = target is self._first.main  # else what the main finding is about may be the reason
            return Judgement("harms" if is_own else "hidden", f"not the gradients of one forward pass: {text}")
        return Judgement("runs", missing, is_worse=self._leaves_untrained(run))

    def _failed(self, target: Diagnostic, run: ObservedRun) -> Judgement:
        main, first = run.main, self._first.main
        if main is None:
            return Judgement("fails", "the program does not end normally")
        if not self._first.ended_well and target is not first and first is not None and main.code == first.code:
            if run.ending == self._first.ending and len(run.passes) == len(self._first.passes):
                return Judgement("hidden")
        return Judgement("fails", main.title, uncovers=True)

    def _new_findings(self, target: Diagnostic, run: ObservedRun) -> Counter[str]:
        """Counts the findings that neither the first run nor the oracle has, or that the fix should have removed."""
        allowed = self._first.counts() - Counter([target.code])
        beyond = self._oracle.counts() - Counter([target.code])
        return run.counts() - (allowed | Counter({code: n for code, n in beyond.items() if not _is_about_saved(code)}))

    def _compared(self, target: Diagnostic, run: ObservedRun) -> str:
        """Says how a run is not as right as the oracle; "" if it is verified."""
        beside = f"; {untrained(run)}" if self._leaves_untrained(run) else ""
        if not self._oracle_is_right:
            return "" if self._is_as_recorded(target, run) else self._without_oracle(run) + beside
        if not run.is_sampled:
            return "its gradients could not be compared"
        if text := difference(run, self._oracle):
            kept = "copies" if self._first.ended_well else "copies and graphs"
            return f"compared with a run that keeps {kept}: {text}{beside}"
        if not run.steps and not run.passes:
            return "there is no backward pass to compare"
        return _printed_otherwise(run, self._oracle, lambda: self._repetition)

    def _is_as_recorded(self, target: Diagnostic, run: ObservedRun) -> bool:
        """Returns whether a run trains with the gradients that the program would have without the cut of a finding."""
        if self._first.ended_well:
            return False
        if id(target) not in self._recordings:
            self._recordings[id(target)] = self._recorded(target)
        right = self._recordings[id(target)]
        if right is None or not (right.ended_well and right.is_sampled and run.is_sampled and run.passes):
            return False
        return not (difference(run, right) or _printed_otherwise(run, right, lambda: self._recorded(target) or right))

    def _leaves_untrained(self, run: ObservedRun) -> bool:
        return untrained(run) not in ("", untrained(self._oracle))

    def _without_oracle(self, run: ObservedRun) -> str:
        if not self._first.ended_well:
            return "no run of the program has right gradients to compare with"
        text = difference(run, self._first)
        return f"compared with the program as it is: {text}" if text else "every gradient is as it was"


def _limit(run: ObservedRun) -> str:
    """Says how far a run is compared if it is longer than that."""
    most = MOST_SAMPLED
    if len(run.steps) == most:
        return f"compared: the first {most} optimizer steps"
    return f"compared: the first {most} backward passes" if not run.steps and len(run.passes) == most else ""


def _printed_otherwise(run: ObservedRun, right: ObservedRun, repeated: Callable[[], ObservedRun]) -> str:
    """Says which line of the output is not that of another run, apart from lines that no two runs have in common."""
    if run.printed == right.printed:
        return ""
    printed = [each.printed for each in (run, right, repeated())]
    lines, others, again = (each.lines for each in printed)
    is_long = any(each.rest for each in printed)
    most = min(map(len, (lines, others, again))) if is_long else None
    for number, (mine, line, later) in enumerate(islice(zip_longest(lines, others, again), most), start=1):
        ends = None in (mine, line) and len(others) == len(again)
        if mine != line and (line == later or ends):
            return f"all gradients are the same, and line {number} of the output is not"
    if is_long and printed[0].rest != printed[1].rest:
        return f"all gradients are the same; the output is too long to compare it after line {most}"
    return ""


def _is_about_saved(code: str) -> bool:
    """Returns whether a finding is about memory that the oracle has copies of: it means nothing there."""
    known = entry(code)
    return known is not None and known.family in ("saved_tensors", "numerics")
