"""The short texts that every form of the report shares: its head line, its outcome, what was not seen."""

from __future__ import annotations

import ast
import re
import signal
from collections import Counter
from collections.abc import Sequence

from tensorlens.journal.rows import SHARED_MEMORY
from tensorlens.records.claim import Claim
from tensorlens.records.model import Backward, Call, Failure, Gap, Notice, Site, Trace
from tensorlens.records.report import Diagnostic, Report
from tensorlens.records.source import one_line, shown_path, tree_of

_INTERNAL = re.compile(r"\s*\(Triggered internally at [^)]*\)")


def headline(report: Report) -> list[str]:
    """`demo.py`, `torch 2.13.0`, `6 calls`, `1 error at line 6`."""
    trace = report.trace
    calls = sum(total.count for total in trace.totals)
    calls = max(calls, sum(isinstance(event, Call | Backward) for event in trace.events))
    rank = trace.script.rank
    parts = [shown_path(trace.script.path, trace.script.folder)]
    parts += [f"rank {rank.number} of {rank.world}"] if rank else []
    parts += [f"torch {trace.versions.torch}", count(calls, "call")]
    for severity in ("error", "warning"):
        found = [diagnostic for diagnostic in report.diagnostics if diagnostic.severity == severity]
        if found:
            first = f", the first{_at(trace, found[0])}" if len(found) > 1 else _at(trace, found[0])
            parts.append(count(len(found), severity) + first)
        elif severity == "error" and final_failure(trace) is not None:
            parts.append("1 error")
    return parts


def _at(trace: Trace, found: Diagnostic) -> str:
    """` at line 6`: where the primary label of a finding points."""
    if not found.labels:
        return ""
    span = found.labels[0].span
    own = span.file == script_file(trace)
    return f" at {f'line {span.line}' if own else f'{shown_path(span.file, trace.script.folder)}:{span.line}'}"


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def final_failure(trace: Trace) -> Failure | None:
    """The exception that ended the script."""
    position = trace.script.failure
    return trace.failures[position] if position is not None else None


def outcome(trace: Trace) -> str:
    """How the program ended, in one line."""
    script, failure = trace.script, final_failure(trace)
    code = "" if script.exit_code is None else f", exit code {script.exit_code}"
    if script.outcome == "ok":
        return f"the script ran to its end{code}"
    if script.outcome == "error":
        announced = next((c.line for c in trace.claims if c.check.startswith("raises") and c.verdict == "holds"), None)
        expected = "" if announced is None else f", as line {announced} says it would"
        if script.exit_code is not None and script.exit_code < 0:
            code = f", and its process was stopped{_signal(script.exit_code)} on its way out"
        return f"the script ended with {failure.type if failure else 'an exception'}{code}{expected}"
    if script.outcome == "exit":
        return f"the script ended itself{code}"
    if script.outcome == "timeout":
        ended = _signal(script.exit_code)
        return f"the script was stopped at its time limit{ended}; the report covers what ran until then"
    if script.outcome == "interrupted":
        return f"the script was interrupted{code}; the report covers what ran until then"
    return f"the script was killed{_signal(script.exit_code)}; the report covers what was recorded until then"


def reference(trace: Trace) -> str:
    """What the comparison with a second run came to, in one line; "" if none was asked for."""
    found = trace.reference
    if found is None:
        return ""
    if found.differences:
        number, index = len(found.differences), found.differences[0].backward
        where = next((f" at {place(trace, event.site)}" for event in trace.events if event.index == index), "")
        wrong = f"{number} wrong {'gradient' if number == 1 else 'gradients'}"
        return f"reference: {wrong} in the pass{where}; nothing is claimed of later passes"
    agree = f"every gradient of {_passes(len(found.compared))} agrees with a run that keeps copies"
    custom = dict.fromkeys(f"`{formula.function}.backward`" for formula in trace.inspection.formulas)
    if custom:
        agree += f"; both used {', '.join(custom)}, measured to be wrong"
    if found.reason:
        return f"reference: {agree + '; of later ones ' if found.compared else ''}nothing is claimed: {found.reason}"
    return f"reference: {agree}" if found.compared else "reference: there was no backward pass to compare"


def _passes(number: int) -> str:
    return "1 backward pass" if number == 1 else f"{number} backward passes"


def _signal(code: int | None) -> str:
    if code is None or code >= 0:
        return "" if code is None else f", exit code {code}"
    try:
        return f" by {signal.Signals(-code).name}"
    except ValueError:
        return f" by signal {-code}"


def place(trace: Trace, site: int | Site | None) -> str:
    """`demo.py:7`; "" for no site."""
    if site is None:
        return ""
    span = trace.sites[site].span if isinstance(site, int) else site.span
    return f"{shown_path(span.file, trace.script.folder)}:{span.line}"


def warnings_noticed(trace: Trace) -> list[tuple[str, str, int]]:
    """(place, warning, how often) of each warning that was emitted."""
    found: Counter[tuple[str, str]] = Counter()
    for event in trace.events:
        if isinstance(event, Notice):
            found[place(trace, event.site), f"{event.category}: {_told(event.message)}"] += 1
    return [(*key, number) for key, number in found.items()]


def _told(message: str) -> str:
    """What a warning says itself: its first line, without the place in PyTorch's own sources that it came from."""
    first, _, rest = message.strip().partition("\n")
    return one_line(_INTERNAL.sub("", first)) + (" ..." if rest.strip() and not _INTERNAL.match(rest.strip()) else "")


def gaps(trace: Trace) -> list[tuple[str, str, int]]:
    """(place, reason, how often) of what the tracer could not see; the first place of each reason."""
    found: dict[str, tuple[str, int]] = {}
    for event in trace.events:
        if isinstance(event, Gap) and event.reason != SHARED_MEMORY:
            first, number = found.get(event.reason, (place(trace, event.site), 0))
            found[event.reason] = first, number + event.count
    rows = [(first, one_line(reason), number) for reason, (first, number) in found.items()]
    folded = trace.events[-1].index + 1 - len(trace.events) if trace.events else 0
    if folded:
        rows.append(("", f"{count(folded, 'call')} of this long run were folded into counts", 1))
    return rows


def shared_memory(trace: Trace) -> str:
    """A sentence for a run in which arrays outside torch share memory with tensors, once for all of them."""
    shared = any(isinstance(event, Gap) and event.reason == SHARED_MEMORY for event in trace.events)
    return (
        "tensors share memory with arrays outside torch: what is written through those is not listed" if shared else ""
    )


def docstring(trace: Trace) -> tuple[str, list[str]]:
    """The title and the paragraphs of the script's docstring; ("", []) if it has none."""
    tree = tree_of(script_source(trace))
    text = (ast.get_docstring(tree) if tree else "") or ""
    title, _, rest = text.strip().partition("\n")
    paragraphs = [one_line(part) for part in rest.strip().split("\n\n")]
    return title.strip(), [part for part in paragraphs if part]


def docstring_lines(trace: Trace) -> range:
    """The lines that the docstring takes in the script."""
    tree = tree_of(script_source(trace))
    if tree is None or not docstring(trace)[0]:
        return range(0)
    body = tree.body
    return range(body[0].lineno, (body[0].end_lineno or body[0].lineno) + 1)


def script_file(trace: Trace) -> str:
    """The script's own file as the sources name it; its path stands in the trace as it was typed."""
    script = trace.script
    name = script.path.replace("\\", "/").rpartition("/")[2]
    candidates = [script.path, f"{script.folder}/{name}", f"{script.folder}\\{name}", "<stdin>"]
    if not script.path.startswith("-"):  # a directory or a zip file
        candidates += [f"{script.folder}/__main__.py", f"{script.folder}/{name}/__main__.py"]
    return next((file for file in candidates if file in trace.sources), script.path)


def script_source(trace: Trace) -> str:
    return trace.sources.get(script_file(trace), "")


# --- claims ---------------------------------------------------------------------------------------------------------


def claim_word(claim: Claim) -> str:
    """`holds`, `refuted`, `not reached`; `false` of a claim that came out otherwise than it says."""
    return claim.verdict if claim.as_expected or claim.verdict == "not reached" else "false"


def claim_verdict(claim: Claim) -> str:
    """The word beside the claim's own line; of a false one, what it says and what is so."""
    if claim.as_expected or claim.verdict == "not reached":
        return claim.verdict
    if claim.changed:
        return "false: the check changes the script"
    if claim.error:
        return "false: the check raised an exception"
    return f"false: expected {_wanted(claim)}, got {_outcome(claim)}{_in_round(claim)}"


def _truth(verdict: str) -> str:
    return "true" if verdict == "holds" else "false"


def _in_round(claim: Claim) -> str:
    return f" in round {claim.round}" if claim.round else ""


def seen(claim: Claim) -> str:
    """`b.grad = tensor([4., 4., 4.]), a.grad = None`; `y and x: two objects, one memory`."""
    return ", ".join(seen_value(*pair) for pair in claim.values)


def seen_value(expression: str, value: str) -> str:
    """`a.grad = None`; `y and x: one object` of a comparison by `is`."""
    return f"{expression}: {value}" if value.startswith(("one object", "two objects")) else f"{expression} = {value}"


def expected_and_got(claim: Claim) -> list[str]:
    """What a false claim expected, and what came instead."""
    if claim.changed:
        return [f"the check itself {claim.changed}{_in_round(claim)}; make it a statement, and check what comes of it"]
    if claim.error:
        return [f"expected {_wanted(claim)}, the check raised {claim.error}{_in_round(claim)}"]
    if claim.verdict == "not reached":
        return ["its line was not reached"]
    values = f": {seen(claim)}" if claim.values and not _raises(claim) else ""
    return [f"expected {_wanted(claim)}, got {_outcome(claim)}{_in_round(claim)}{values}"]


def _raises(claim: Claim) -> bool:
    return claim.check.startswith("raises ")


def _wanted(claim: Claim) -> str:
    """`true`, `false`, `RuntimeError: does not require grad`, `no RuntimeError`."""
    if not _raises(claim):
        return _truth(claim.expected)
    return ("" if claim.expected == "holds" else "no ") + claim.check.removeprefix("raises ")


def _outcome(claim: Claim) -> str:
    if not _raises(claim):
        return _truth(claim.verdict)
    return ", ".join("no exception" if kind == "raised" else f"{kind}: {text}" for kind, text in claim.values)


def claims_to_read(claims: Sequence[Claim]) -> list[Claim]:
    """Those that are more than a fact that came true: false, refuted, conditional."""
    return [claim for claim in claims if not claim.as_expected or claim.verdict == "refuted" or claim.condition]


def plain_claims(claims: Sequence[Claim], listed: Sequence[Claim]) -> str:
    """`9 more hold`: how many claims are not listed."""
    number = len(claims) - len(listed)
    if not listed:
        return "all hold" if number > 1 else "it holds"
    return f"{number} more {'holds' if number == 1 else 'hold'}" if number else ""


def failed_claims(claims: Sequence[Claim]) -> str:
    """`4 of 5 claims are false: lines 5, 6, 8, 10`; "" if all came out as they say."""
    missed = [claim.line for claim in claims if not claim.as_expected and claim_word(claim) == "not reached"]
    false = [claim.line for claim in claims if not claim.as_expected and claim.line not in missed]
    parts = []
    if false:
        be = "is" if len(false) == 1 else "are"
        parts.append(f"{len(false)} of {count(len(claims), 'claim')} {be} false: {_lines(false)}")
    if missed:
        be = "was" if len(missed) == 1 else "were"
        number = f"{len(missed)}" if false else f"{len(missed)} of {count(len(claims), 'claim')}"
        parts.append(f"{number} {be} not reached: {_lines(missed)}")
    return "; ".join(parts)


def _lines(numbers: Sequence[int]) -> str:
    return f"line{'' if len(numbers) == 1 else 's'} {', '.join(map(str, numbers))}"
