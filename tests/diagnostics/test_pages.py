"""Runs the examples of the pages: each failing one is explained, on the marked lines, and each fixed one runs clean."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.pages import fence, marked, untested
from support.ranks import run_in_ranks
from support.releases import IS_QUOTED, is_quiet, skip_if_different
from support.warm import Ran, Warm
from support.warm_runs import WarmRuns

from tensorlens.diagnostics import diagnose, finder, manual
from tensorlens.diagnostics.shared.role_names import ROLE_NAMES
from tensorlens.errors import UsageError
from tensorlens.lessons.bundled import lessons
from tensorlens.records import error_messages
from tensorlens.records.error_messages import classify
from tensorlens.records.model import Notice, Trace
from tensorlens.render.manual import family_index, index, page_markdown, page_text
from tensorlens.render.options import RenderOptions
from tensorlens.trials.eager_runs import eager_report

CODES = [entry.code for entry in error_messages.entries()]
UNTESTED = untested()
OF_RANKS = [entry.code for entry in error_messages.entries() if entry.ranks]
RUNNABLE = [code for code in CODES if code not in UNTESTED and code not in OF_RANKS]


def page_for(wanted: str, width: int = 80, color: bool = False) -> str:
    """Returns the output of `tensorlens errors` for a code or a pasted message."""
    return page_text(manual.look_up(wanted), RenderOptions(width=width, color=color))


def bare(text: str) -> str:
    """Removes the colours of a page, and the blanks at the ends of its lines."""
    return re.sub(r" +$", "", re.sub(r"\x1b\[[\d;]*m", "", text), flags=re.MULTILINE)


def codes_of_messages(trace: Trace) -> set[str]:
    """Returns the codes of the errors and warnings of a run."""
    notices = [event.message for event in trace.events if isinstance(event, Notice)]
    return {failure.kind for failure in trace.failures} | {classify(message) for message in notices}


def messages_of(ran: Ran, trace: Trace) -> list[str]:
    """Returns the messages of a run, and its standard error, each on one line."""
    notices = [event.message for event in trace.events if isinstance(event, Notice)]
    texts = [*(failure.message for failure in trace.failures), *notices, ran.stderr]
    return [" ".join(text.split()) for text in texts]


def said_alike(quoted: str, text: str) -> bool:
    """Returns whether a page's quotation of PyTorch occurs in a message; memory addresses differ between runs."""
    pieces = re.split(r"0x\.\.\.|(?: \.\.\.)$", quoted)
    return re.search("0x[0-9a-f]+".join(map(re.escape, filter(None, pieces))), text) is not None


def lines_of_messages(trace: Trace, code: str) -> set[int]:
    """Returns the lines of the script at which PyTorch raised or warned."""
    sites = [failure.site for failure in trace.failures if failure.kind == code]
    sites += [event.site for event in trace.events if isinstance(event, Notice) and classify(event.message) == code]
    return {trace.sites[site].span.line for site in sites if site is not None}


def written(folder: Path, text: str) -> Path:
    script = folder / "example.py"
    script.write_text(text, encoding="utf-8")
    return script


@pytest.mark.parametrize("code", CODES)
def test_form(code: str) -> None:
    text = manual.page(code)
    assert re.findall("^## (.*)$", text, re.MULTILINE) == ["What happened", "Why", "Fails", "Fixed"]
    entry = error_messages.entry(code)
    assert entry is not None
    assert entry.summary.endswith(".")
    roles = marked(fence(code, "Fails"))
    assert roles
    assert roles.keys() <= ROLE_NAMES.keys()
    assert not marked(fence(code, "Fixed"))
    assert max(map(len, text.splitlines())) <= 120


@pytest.mark.parametrize("code", RUNNABLE)
def test_failing_example(code: str, warm: Warm, tmp_path: Path) -> None:
    example = fence(code, "Fails")
    script = written(tmp_path, example)
    ran, trace = warm.traced(script)
    entry = error_messages.entry(code)
    assert entry is not None
    if code not in {finding.code for finding in diagnose(trace)}:
        skip_if_different(script, code, warm)
    if entry.kind == "silent":
        assert ran.returncode == 0, ran.stderr
    else:
        assert code in codes_of_messages(trace) | set(error_messages.find(ran.stderr)), ran.stderr
        if IS_QUOTED:
            assert any(said_alike(entry.message, text) for text in messages_of(ran, trace)), entry.message
        assert lines_of_messages(trace, code) & set[int]().union(*marked(example).values())
    if finder(code) is None:
        return
    found = [finding for finding in diagnose(trace) if finding.severity != "note"]
    if not found:  # a failure that the example catches is a note
        found = list(diagnose(trace))
    if not found and entry.kind == "silent":  # some show in a second run only
        found = list(diagnose(warm.compared(script)[1]))
    if not found and trace.inspection.compiled:
        runs = WarmRuns(warm, script)
        found = list(eager_report(runs, runs.first()).diagnostics)
    assert [finding.code for finding in found] == [code]
    lines: dict[str, set[int]] = {}
    for label in found[0].labels:
        lines.setdefault(label.role, set()).add(label.span.line)
    expected = marked(example)
    if entry.kind == "silent":
        expected.pop("observed_here", None)  # for the reader: nothing happens there
    assert expected.keys() <= lines.keys()
    assert lines == {role: expected.get(role) for role in lines}


@pytest.mark.parametrize("code", RUNNABLE)
def test_fixed_example(code: str, warm: Warm, tmp_path: Path) -> None:
    script = written(tmp_path, fence(code, "Fixed"))
    ran, trace = warm.traced(script)
    if ran.returncode:
        skip_if_different(script, code, warm)
    assert is_quiet(ran, script, warm), ran.stderr
    assert [finding.code for finding in diagnose(trace) if finding.severity != "note"] == []


@pytest.mark.parametrize("code", OF_RANKS)
def test_failing_example_of_ranks(code: str, warm: Warm, tmp_path: Path) -> None:
    example = fence(code, "Fails")
    entry = error_messages.entry(code)
    assert entry is not None
    ran, report = run_in_ranks(warm, written(tmp_path, example), entry.ranks)
    if entry.kind == "silent":
        assert [each.returncode for each in ran] == [0] * entry.ranks, ran[0].stderr
    else:
        assert any(code in error_messages.find(each.stderr) for each in ran)
    (found,) = (each for each in report.findings if each.diagnostic.severity != "note")
    assert found.diagnostic.code == code
    lines: dict[str, set[int]] = {}
    for label in found.diagnostic.labels:
        lines.setdefault(label.role, set()).add(label.span.line)
    assert lines == marked(example)


@pytest.mark.parametrize("code", OF_RANKS)
def test_fixed_example_of_ranks(code: str, warm: Warm, tmp_path: Path) -> None:
    entry = error_messages.entry(code)
    assert entry is not None
    ran, report = run_in_ranks(warm, written(tmp_path, fence(code, "Fixed")), entry.ranks)
    assert [(each.returncode, each.stderr) for each in ran] == [(0, "")] * entry.ranks
    assert report.findings == ()
    assert report.differences == ()


def test_pytorch_is_quoted_as_it_speaks() -> None:
    for entry in error_messages.entries():
        assert bool(entry.message) == (entry.kind != "silent"), entry.code
        if entry.message:
            assert entry.code in error_messages.find(entry.message), entry.code


def test_links_name_existing_things() -> None:
    names = {lesson.name for lesson in lessons()}
    codes = {entry.code for entry in error_messages.entries()}
    for entry in error_messages.entries():
        assert entry.see or entry.tier > 1, entry.code
        for link in entry.see:
            command, *words = link.split()
            assert command in ("run", "errors", "compare"), link
            assert command != "run" or words[0] in names, link
            assert command != "errors" or (words[0] in codes and words[0] != entry.code), link
            assert command != "compare" or len(words) >= 2, link


def test_the_short_list_is_what_is_met_every_day() -> None:
    assert sorted(manual.MOST_OFTEN) == sorted(entry.code for entry in error_messages.entries() if entry.tier == 1)
    lines = index(RenderOptions()).splitlines()
    listed = [line.split()[1] for line in lines if line.startswith(("error ", "warning ", "silent "))]
    assert lines[0].startswith("Met every day")
    assert tuple(listed) == manual.MOST_OFTEN
    assert len(lines) < len(index(RenderOptions(), everything=True).splitlines()) / 3


def test_every_finding_is_in_the_index() -> None:
    lines = index(RenderOptions(), everything=True).splitlines()
    listed = [line.split()[1] for line in lines if line.startswith(("error ", "warning ", "silent "))]
    assert sorted(listed) == sorted(entry.code for entry in error_messages.entries())


def test_page_of_a_code() -> None:
    page = page_for("leaf-modified-inplace")
    assert page.startswith("leaf-modified-inplace (error, RuntimeError)\n")
    said = "    a leaf Variable that requires grad is being used in an in-place operation."
    assert page.index(said) < page.index("A leaf that requires grad was changed") < page.index("\nFails\n")
    assert "    # the leaf is made here\n    weight = torch.tensor([1.0, 2.0], requires_grad=True)\n" in page
    assert "    weight.mul_(0.5)  # rejected here\n" in page
    assert "    tensorlens run init-leaf " in page
    assert "    tensorlens explain your_script.py " in page
    assert page_for("error[leaf_modified_inplace]:") == page


@pytest.mark.parametrize(
    "before", ["", "RuntimeError: ", 'Traceback (most recent call last):\n  File "a.py", line 3\nE: ']
)
def test_page_of_a_message(before: str) -> None:
    message = "a leaf Variable that requires grad is being used in an in-place operation."
    assert page_for(before + message) == page_for("leaf-modified-inplace")


def test_examples_that_cannot_run_here_say_why() -> None:
    assert all(len(reason) > 10 for reason in UNTESTED.values())
    assert len(UNTESTED) < 10
    for code in UNTESTED:
        for heading in ("Fails", "Fixed"):
            compile(fence(code, heading), code, "exec")


def test_a_family_is_listed() -> None:
    lines = family_index("optimizers", RenderOptions()).splitlines()
    listed = [line.split()[1] for line in lines if line.startswith(("error ", "warning ", "silent "))]
    assert listed == [entry.code for entry in error_messages.entries() if entry.family == "optimizers"]
    whole = index(RenderOptions())
    assert all(f"{family}," in whole or f"{family}." in whole for family in manual.families())


def test_a_message_with_several_pages_shows_the_specific_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = ["leaf-modified-inplace", "nonleaf-grad-access"]
    monkeypatch.setattr(error_messages, "find", lambda text: codes)
    page = page_for("something that both say")
    assert page.index("leaf-modified-inplace (") < page.index("nonleaf-grad-access (")


@pytest.mark.parametrize(
    ("wanted", "answer"),
    [
        ("leaf-modified", "did you mean leaf-modified-inplace"),
        ("qqqqqq", "tensorlens errors lists the codes"),
        ("what has\ngone wrong", "no page for this message: what has gone wrong"),
    ],
)
def test_unknown_is_one_line(wanted: str, answer: str) -> None:
    with pytest.raises(UsageError, match=re.escape(answer)) as error:
        page_for(wanted)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("code", CODES)
def test_a_page_is_shown_without_marks_for_programs(code: str) -> None:
    for shown in (page_for(code), page_markdown(manual.look_up(code))):
        assert not re.search(r"_here\b", shown)
    text = page_for(code)
    assert "```" not in text
    assert "##" not in text
    assert bare(page_for(code, color=True)) == text
    own = set(fence(code, "Fails").splitlines()) | set(fence(code, "Fixed").splitlines())
    example = {line.rpartition("  # ")[0].strip() or line.strip() for line in own}
    prose = [line for line in text.splitlines() if not any(line.strip().startswith(each) for each in example if each)]
    assert [line for line in prose if len(line) > 80 and "https://" not in line] == []


def test_a_mistake_that_raises_nothing_does_not_fail() -> None:
    assert "\nGoes wrong\n" in page_for("detach-shares-memory")
    assert "\nWarns\n" in page_for("nonleaf-grad-access")
    assert "## Goes wrong" in page_markdown(manual.look_up("detach-shares-memory"))


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("element 0 of variables does not require grad and does not have a grad_fn", "element-does-not-require-grad"),
        ("there are no graph nodes that require computing gradients", "element-does-not-require-grad"),
        ("a leaf Variable that requires grad has been used in an in-place operation.", "leaf-modified-inplace"),
        ("Can't call numpy() on Variable that requires grad.", "numpy-on-requires-grad"),
        ("Using a target size (torch.Size([4])) that is different to the input size (torch.Size([4, 1])).",
         "broadcast-in-loss"),
    ],
)  # fmt: skip
def test_an_older_wording_finds_its_page(message: str, code: str) -> None:
    assert page_for(message).startswith(f"{code} (")
    assert page_for(f"RuntimeError: {message}").startswith(f"{code} (")


def test_what_an_older_wording_means_today_is_shown_too() -> None:
    message = "a leaf Variable that requires grad has been used in an in-place operation."
    codes = [entry.code for entry in manual.look_up(message).entries]
    assert codes == ["leaf-modified-inplace", "leaf-marked-dirty-in-custom-function"]
    assert classify(message) == "leaf-marked-dirty-in-custom-function"


TRACEBACK = """\
train.py:9: UserWarning: The .grad attribute of a Tensor that is not a leaf Tensor is being accessed.
Traceback (most recent call last):
  File "train.py", line 12, in <module>
    loss.backward()
ValueError: first

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "train.py", line 14, in <module>
    raise RuntimeError("grad can be implicitly created only for scalar outputs")
"""


@pytest.mark.parametrize(
    ("last", "code"),
    [
        ("RuntimeError: Trying to backward through the graph a second time", "backward-through-freed-graph"),
        ("[rank0]: RuntimeError: can't optimize a non-leaf Tensor", "optimize-nonleaf"),
        ("ValueError: can't optimize\n  a non-leaf Tensor", "optimize-nonleaf"),
    ],
)
def test_a_traceback_is_looked_up_by_its_last_line(last: str, code: str) -> None:
    assert [entry.code for entry in manual.look_up(TRACEBACK + last + "\n").entries] == [code]


def test_the_last_line_of_an_unknown_traceback_is_quoted() -> None:
    with pytest.raises(UsageError, match=r"^no page for this message: KeyError: 'lr' \("):
        manual.look_up(TRACEBACK + "KeyError: 'lr'\n")


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)", "a shape error"),
        ("RuntimeError: The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 0",
         "a shape error"),
        ("RuntimeError: expected scalar type Float but found Double", "a dtype error"),
        ("RuntimeError: Expected all tensors to be on the same device", "a device error"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", "a lack of memory"),
    ],
)  # fmt: skip
def test_other_errors_are_said_to_be_others(message: str, kind: str) -> None:
    for text in (message, TRACEBACK + message):
        shown = page_for(text)
        assert shown.startswith(f"This is not an autograd error: it is {kind}.\n")
        assert message[:50] in shown


def test_no_message_of_autograd_is_taken_for_another() -> None:
    specific = [entry for entry in error_messages.entries() if entry.message and not entry.generic]
    assert [entry.code for entry in specific if not manual.look_up(entry.message).entries] == []
