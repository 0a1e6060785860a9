"""Describes claims and their verdicts in the words that all forms of the report share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tensorlens.records.claim import Claim, condition_text
from tensorlens.render.report.headline import count


def claim_word(claim: Claim) -> str:
    """Returns `holds`, `refuted` or `not reached`; `false` for a claim whose verdict is not the expected one."""
    return claim.verdict if claim.as_expected or claim.verdict == "not reached" else "false"


def claim_verdict(claim: Claim) -> str:
    """Returns the text beside the claim's own line. For a false claim, it has the expected and the actual verdict."""
    if claim.as_expected or claim.verdict == "not reached":
        return claim.verdict
    if claim.changed:
        return "false: the check changes the script"
    if claim.error:
        return "false: the check raised an exception"
    return f"false: expected {_expectation(claim)}, got {_outcome(claim)}{_in_round(claim)}"


def _truth(verdict: str) -> str:
    return "true" if verdict == "holds" else "false"


def _in_round(claim: Claim) -> str:
    return f" in round {claim.round}" if claim.round else ""


def seen(claim: Claim) -> str:
    """Returns the values seen: `b.grad = tensor([4., 4., 4.]), a.grad = None`; `y and x: two objects, one memory`."""
    return ", ".join(seen_value(*pair) for pair in claim.values)


def seen_value(expression: str, value: str) -> str:
    """Returns `a.grad = None`, or for a comparison by `is`: `y and x: one object`."""
    return f"{expression}: {value}" if value.startswith(("one object", "two objects")) else f"{expression} = {value}"


def expected_and_got(claim: Claim) -> list[str]:
    """Says what a false claim expected, and what was seen."""
    if claim.changed:
        return [f"the check itself {claim.changed}{_in_round(claim)}; make it a statement, and check its result"]
    if claim.error:
        return [f"expected {_expectation(claim)}, the check raised {claim.error}{_in_round(claim)}"]
    if claim.verdict == "not reached":
        return ["its line was not reached"]
    values = f": {seen(claim)}" if claim.values and not _raises(claim) else ""
    return [f"expected {_expectation(claim)}, got {_outcome(claim)}{_in_round(claim)}{values}"]


def _raises(claim: Claim) -> bool:
    return claim.check.startswith("raises ")


def _expectation(claim: Claim) -> str:
    """Returns the expectation: `true`, `false`, `RuntimeError: does not require grad`, `no RuntimeError`."""
    if not _raises(claim):
        return _truth(claim.expected)
    return ("" if claim.expected == "holds" else "no ") + claim.check.removeprefix("raises ")


def _outcome(claim: Claim) -> str:
    if not _raises(claim):
        return _truth(claim.verdict)
    return ", ".join("no exception" if kind == "raised" else f"{kind}: {text}" for kind, text in claim.values)


def claim_details(claim: Claim, statements: Mapping[str, str]) -> list[str]:
    """Returns lines about a claim: the documented statement, the condition, and the values seen or, for a false claim,
    what was expected."""
    statement = statements.get(claim.id or "", "")
    details = [f"{claim.id} {statement}".strip()] if claim.id else []
    if claim.condition:
        details.append(condition_text(claim.expected, claim.condition, statement))
    if claim.as_expected and claim.values:
        details.append("seen: " + seen(claim))
    return details if claim.as_expected else [*details, *expected_and_got(claim)]


def claims_to_read(claims: Sequence[Claim]) -> list[Claim]:
    """Returns the claims that a user has to read: false, refuted and conditional ones."""
    return [claim for claim in claims if not claim.as_expected or claim.verdict == "refuted" or claim.condition]


def plain_claims(claims: Sequence[Claim], listed: Sequence[Claim]) -> str:
    """Returns `9 more hold`, for the claims that are not listed."""
    number = len(claims) - len(listed)
    if not listed:
        return "all hold" if number > 1 else "it holds"
    return f"{number} more {'holds' if number == 1 else 'hold'}" if number else ""


def failed_claims(claims: Sequence[Claim]) -> str:
    """Returns `4 of 5 claims are false: lines 5, 6, 8, 10`; "" if all verdicts are as expected."""
    not_reached = [claim.line for claim in claims if not claim.as_expected and claim_word(claim) == "not reached"]
    false = [claim.line for claim in claims if not claim.as_expected and claim.line not in not_reached]
    parts = []
    if false:
        be = "is" if len(false) == 1 else "are"
        parts.append(f"{len(false)} of {count(len(claims), 'claim')} {be} false: {_lines(false)}")
    if not_reached:
        be = "was" if len(not_reached) == 1 else "were"
        number = f"{len(not_reached)}" if false else f"{len(not_reached)} of {count(len(claims), 'claim')}"
        parts.append(f"{number} {be} not reached: {_lines(not_reached)}")
    return "; ".join(parts)


def _lines(numbers: Sequence[int]) -> str:
    return f"line{'' if len(numbers) == 1 else 's'} {', '.join(map(str, numbers))}"
