"""The `#:` lines: how they are read, where they are checked, and that checking leaves the script as it was."""

from __future__ import annotations

import ast
import builtins
import contextlib
import random
import textwrap
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorlens.errors import UsageError
from tensorlens.lessons.bundled import Header, find, header, is_bundled, lessons
from tensorlens.lessons.starter import write_starter
from tensorlens.records import claim_syntax
from tensorlens.records.claim import Claim
from tensorlens.records.source import tree_of
from tensorlens.tracer.entry.claim_checker import ClaimChecker

LESSONS = [lesson.path for lesson in lessons()]


def ran(source: str, **names: Any) -> tuple[tuple[Claim, ...], dict[str, Any], BaseException | None]:
    """The claims of a script that was run, the names it left, and what ended it."""
    text = textwrap.dedent(source)
    checker = ClaimChecker(claim_syntax.parse(text), contextlib.nullcontext)
    module = {"__name__": "__main__", "torch": torch, **names}
    error = None
    try:
        exec(checker.instrument(text, "script.py"), module)
    except BaseException as raised:
        error = raised
    return checker.results(), module, error


def verdicts(source: str, **names: Any) -> list[str]:
    return [claim.verdict for claim in ran(source, **names)[0]]


# --- reading --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "spec"),
    [
        ("#: x == 1", claim_syntax.ClaimSpec(2, 0, "x == 1")),
        ("#:x == 1", claim_syntax.ClaimSpec(2, 0, "x == 1")),
        ("#: [1] == [x]", claim_syntax.ClaimSpec(2, 0, "[1] == [x]")),
        ("#: [000-5] refuted: x is None", claim_syntax.ClaimSpec(2, 0, "x is None", "000-5", "refuted")),
        ("#: [000-5] holds: x", claim_syntax.ClaimSpec(2, 0, "x", "000-5")),
        ("#: refuted: x", claim_syntax.ClaimSpec(2, 0, "x", None, "refuted")),
        ("#: [000-3] holds if saved for it: x", claim_syntax.ClaimSpec(2, 0, "x", "000-3", "holds", "saved for it")),
        ("#: [000-3] refuted only if it is: x", claim_syntax.ClaimSpec(2, 0, "x", "000-3", "refuted", "it is")),
        ("#: raises RuntimeError", claim_syntax.ClaimSpec(2, 0, "raises RuntimeError")),
        ("#: {x: 1}[x]", claim_syntax.ClaimSpec(2, 0, "{x: 1}[x]")),
        ("#: x ==\n#:     1", claim_syntax.ClaimSpec(2, 0, "x == 1")),
        ("#: [000-1] holds:\n#:     x", claim_syntax.ClaimSpec(2, 0, "x", "000-1")),
    ],
)
def test_reads(line: str, spec: claim_syntax.ClaimSpec) -> None:
    assert claim_syntax.parse(f"x = 1\n{line}\n") == (spec,)


@pytest.mark.parametrize(
    ("check", "raises"),
    [
        ("raises RuntimeError", ("RuntimeError", "")),
        ("raises torch.OutOfMemoryError: 2: tried", ("torch.OutOfMemoryError", "2: tried")),
        ("raises", None),
        ("x", None),
    ],
)
def test_reads_expected_exceptions(check: str, raises: tuple[str, str] | None) -> None:
    assert claim_syntax.ClaimSpec(1, 0, check).raises == raises


def test_what_is_no_claim() -> None:
    assert (
        claim_syntax.parse('y = """\n#: x\n"""\nz = "#: x"  # x\n# :) fine\n# : a remark of several words\n#x\n') == ()
    )
    assert claim_syntax.parse("x = (\n#: 1\n") == ()  # not Python: running it says so


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("x = 1\n#: what x is for\n", "line 2: this claim is not a Python expression: what x is for"),
        ("x = 1\n#: [000-1] refutd: x\n", "line 2: no such verdict 'refutd'; write `holds:` or `refuted:`"),
        ("x = 1\n#: hold: x\n#: refuted: x\n#: x\n", "line 2: no such verdict 'hold'; write `holds:` or `refuted:`"),
        ("x = 1\n#: true if it rains: x\n", "line 2: no such verdict 'true'; write `holds:` or `refuted:`"),
        ("x = 1\n#: what x\n#: x\n", "line 2: this claim is not a Python expression: what x"),
        ("x = 1\n#: x ==\n#: holds: x\n", "line 2: this claim is not a Python expression: x =="),
        (
            "x = 1\n#: x.y = (3,)\n",
            "line 2: a claim is a question, and this is an assignment: x.y = (3,); did you mean `==`?",
        ),
        ("x = 1\n#: [a-1] x\n", "line 2: a claim with an id needs a verdict: write `[a-1] holds: x`"),
        (
            "x = 3  #: x == 3\n",
            "line 1: a claim has a line of its own, below the code; a `#:` after code is not checked",
        ),
        ("x = 3\n# : x == 3\n", "line 2: a claim begins with `#:`, without a space; `# : x == 3` is not checked"),
        ("x = 3  # : x == 3\n", "line 1: a claim begins with `#:`, without a space; `# : x == 3` is not checked"),
        ("x = 1\n#:\n", "line 2: this claim is not a Python expression: "),
        ("#: x\nx = 1\n", "line 1: this claim follows no statement of its block: x"),
        ("x = 1\n    #: x\n", "line 2: this claim follows no statement of its block: x"),
        ("if 1:\n    #: x\n    x = 1\n", "line 2: this claim follows no statement of its block: x"),
        ("if 1:\n    x = 1\n  #: x\n", "line 3: this claim follows no statement of its block: x"),
        ("x = [\n    #: x\n    1]\n", "line 2: this claim follows no statement of its block: x"),
    ],
)
def test_refuses_in_one_line(source: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        claim_syntax.parse(source)
    assert str(caught.value) == message


@given(st.text(alphabet=st.sampled_from("#: []()=\n\t'\"\\xif1holdsrefutedraises-0é"), max_size=60))
@settings(max_examples=300, deadline=None)
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        specs = claim_syntax.parse(text)
    except UsageError as error:
        specs = ()
        words = str(error)
    else:
        words = ""
    assert "\n" not in words
    for spec in specs:
        assert spec.raises or ast.parse(spec.check, mode="eval")


BLOCKS = ["if 1:", "for _ in [1]:", "with quiet():", "try:", "def f():", "class C:", "while go():", "match 1:"]


@st.composite
def scripts(draw: st.DrawFn, depth: int = 0) -> list[str]:
    """Draws a script's lines, in which the statement `n` precedes the claim `here == n`."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        if depth < 3 and draw(st.booleans()):
            head = draw(st.sampled_from(BLOCKS[:6]))
            lines += [head, *("    " + line for line in draw(scripts(depth + 1)))]
            lines += {"try:": ["finally:", "    here = 0"], "if 1:": ["else:", "    here = 0"]}.get(head, [])
        lines.append("here = N")
        lines += ["# a remark"] * draw(st.integers(0, 1)) + ["#: here == N"] * draw(st.integers(0, 2))
    return lines


@given(scripts())
@settings(max_examples=100, deadline=None)
def test_a_claim_is_checked_after_the_statement_before_it_in_its_block(lines: list[str]) -> None:
    number = 0
    for position, line in enumerate(lines):
        number += line.strip() == "here = N"
        lines[position] = line.replace("N", str(number))
    source = "\n".join(lines) + "\n"
    expected = sum(line.strip().startswith("#:") for line in lines)
    found, _, error = ran(source, quiet=contextlib.nullcontext)
    assert error is None
    assert len(found) == expected
    assert {claim.verdict for claim in found} <= {"holds", "not reached"}
    assert all(claim.verdict == "holds" for claim in found if "def f" not in source)


# --- where the claims are -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_instrumentation_moves_nothing(path: Any) -> None:
    source = path.read_text(encoding="utf-8")
    specs = claim_syntax.parse(source)
    assert specs
    plain, instrumented = ast.parse(source), claim_syntax.instrument(source, str(path), specs, "check")
    assert ast.get_docstring(instrumented) == ast.get_docstring(plain)
    wanted = sorted(places(plain))
    left = sorted(places(_Without().visit(instrumented)))
    assert left == wanted


class _Without(ast.NodeTransformer):
    """The script without what was put into it."""

    def visit_Try(self, node: ast.Try) -> Any:
        self.generic_visit(node)
        return node.body if len(node.handlers) == 1 and node.handlers[0].type is None else node

    def visit_Expr(self, node: ast.Expr) -> Any:
        call = node.value
        return None if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "check" else node


def places(tree: ast.AST) -> Iterator[tuple[Any, ...]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.expr | ast.stmt):
            yield node.lineno, node.col_offset, node.end_lineno, node.end_col_offset, type(node).__name__


def test_docstring_and_future_imports_stay_first() -> None:
    found, names, error = ran(
        '''\
        """Title"""
        #: __doc__ == "Title"
        from __future__ import annotations
        #: True
        from __future__ import division
        x: undefined = 1
        #: x == 1
        '''
    )
    assert error is None
    assert [claim.verdict for claim in found] == ["holds"] * 3
    assert names["__annotations__"] == {"x": "undefined"}


def test_the_traceback_is_the_scripts_own() -> None:
    _, _, error = ran("def f():\n    raise ValueError('no')\n    #: raises ValueError\n\n\nf()\n#: raises ValueError\n")
    lines, entry = [], error.__traceback__ if error else None
    while entry is not None:
        lines.append((entry.tb_frame.f_code.co_filename, entry.tb_lineno))
        entry = entry.tb_next
    assert lines[1:] == [("script.py", 6), ("script.py", 2)]
    assert error is not None
    assert error.__context__ is None


# --- verdicts -------------------------------------------------------------------------------------------------------


def test_names_are_the_scripts_own() -> None:
    source = """
    k = 3
    def f(n):
        own = n * k
        #: own == n * k and [own + k + i for i in range(2)] == [9, 10]
        return own
    f(2)
    #: sum(k for _ in range(k)) == 9 and f(2) == 6
    class C:
        member = k
        #: member == 3
    """
    assert verdicts(source) == ["holds"] * 3


def test_operands_are_evaluated_once_and_noted() -> None:
    seen: list[Any] = []

    def look(value: Any) -> Any:
        seen.append(value)
        return value

    found, _, _ = ran("x = 2\n#: look(x) < 3 < look(4) and not look(0) or look('never')\n", look=look)
    assert found[0].verdict == "holds"
    assert found[0].values == (("look(x)", "2"), ("look(4)", "4"), ("look(0)", "0"))
    assert seen == [2, 4, 0]


def test_a_comparison_stops_where_python_stops() -> None:
    found, _, _ = ran("x = 2\n#: x > 3 > never\n#: x > 3 and never\n")
    assert [(claim.verdict, claim.values, claim.error) for claim in found] == [("refuted", (("x", "2"),), "")] * 2


def test_addresses_are_numbered() -> None:
    found, _, _ = ran("a = torch.ones(2)\nb = a[:]\n#: a.data_ptr() == b.data_ptr() != a.clone().data_ptr()\n")
    assert [value for _, value in found[0].values] == ["address 1", "address 1", "address 2"]


@pytest.mark.parametrize("recorded", ["holds", "refuted"])
def test_a_check_that_raises_is_never_as_recorded(recorded: str) -> None:
    (claim,), _, error = ran(f"x = 1\n#: [u-1] {recorded}: x.nothing\n")
    assert error is None
    assert not claim.as_expected
    assert claim.error == "AttributeError: 'int' object has no attribute 'nothing'"


def test_a_check_without_a_truth_value() -> None:
    (claim,), _, _ = ran("x = torch.ones(2)\n#: x == x\n")
    assert claim.verdict == "refuted"
    assert claim.error.startswith("RuntimeError: Boolean value of Tensor with more than one value")


def test_in_a_loop_all_passes_must_agree() -> None:
    found, _, _ = ran("for i in range(4):\n    x = i\n    #: x < 2\n    #: refuted: x == 1\n")
    assert [(claim.verdict, claim.values[0]) for claim in found] == [("refuted", ("x", "2")), ("holds", ("x", "1"))]


def test_a_claim_that_fails_in_a_loop_says_in_which_round() -> None:
    found, _, _ = ran("for i in range(4):\n    x = i\n    #: x < 2\n    #: x < 9\nx = 7\n#: x == 1\n")
    assert [(claim.as_expected, claim.round) for claim in found] == [(False, 3), (True, 0), (False, 0)]


@pytest.mark.parametrize(
    ("check", "changed"),
    [
        ("(a * 2).sum().backward() is None", "sets a.grad"),
        ("(b * 2).sum().backward() is None", "adds to b.grad"),
        ("c.add_(1) is c", "writes c"),
        ("b.data.zero_() is not None", "writes b"),
        ("net.bias.data.fill_(2) is not None", "writes net.bias"),
        ("c.requires_grad_() is c", "sets requires_grad of c to True"),
        ("found.append(1) is None", "changes found"),
        ("table['of'].append(1) is None", "changes table['of']"),
        ("bind() is None", "makes the name fresh"),
        ("globals().update(fresh=1) is None", ""),
        ("b.sum() == 2 and [z for z in (b,)][0].clone().add_(1) is not None and (y := 3)", ""),
        ("torch.autograd.grad((a * a).sum(), a)[0].tolist() == [2.0, 2.0]", ""),
    ],
)
def test_a_claim_that_changes_the_script_is_reported(check: str, changed: str) -> None:
    source = f"""
    a, b, c = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True), torch.ones(2)
    net, found, table = torch.nn.Linear(2, 1), [], {{"of": []}}
    def bind():
        global fresh
        fresh = 1
    b.sum().backward()
    #: {check}
    """
    found, _, error = ran(source)
    assert error is None
    assert (found[0].verdict, found[0].changed, found[0].as_expected) == ("holds", changed, not changed)


def test_what_a_claim_saw_of_two_tensors_is_whether_they_are_one() -> None:
    found, _, _ = ran("x = torch.ones(2)\ny = x.detach()\n#: refuted: y is x\n#: y is not x.clone()\n#: x is x\n")
    assert [(claim.as_expected, claim.values) for claim in found] == [
        (True, (("y and x", "two objects, one memory"),)),
        (True, (("y and x.clone()", "two objects, two memories"),)),
        (True, (("x and x", "one object"),)),
    ]


def test_what_says_nothing_is_not_noted() -> None:
    found, _, _ = ran("x = torch.ones(2)\n#: x.dtype == torch.float32 and type(x.sum().item()) is float\n")
    assert found[0].values == (("x.dtype", "torch.float32"), ("type(x.sum().item())", "<class 'float'>"))


def test_an_object_that_refuses_to_be_looked_at_fails_no_claim() -> None:
    source = """
    class Odd(torch.nn.Module):
        _parameters = property(lambda self: 1 / 0)
    odd = Odd.__new__(Odd)
    #: 1 == 1
    """
    assert verdicts(source) == ["holds"]


def test_not_reached() -> None:
    source = "x = 1\n#: x\nif not x:\n    y = 1\n    #: y\nraise SystemExit\n#: x\n"
    assert verdicts(source) == ["holds", "not reached", "not reached"]


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ("raises ValueError", "holds"),
        ("raises Exception: no", "holds"),
        ("raises builtins.ValueError", "holds"),
        ("refuted: raises ValueError", "holds"),
        ("raises RuntimeError", "refuted"),
        ("raises ValueError: yes", "refuted"),
    ],
)
def test_expected_exceptions(claim: str, verdict: str) -> None:
    ending, _, error = ran(f"raise ValueError('no,\\n  no')\n#: {claim}\n")
    caught = verdicts(f"try:\n    raise ValueError('no,\\n  no')\n    #: {claim}\nexcept ValueError:\n    pass\n")
    assert isinstance(error, ValueError)
    assert [ending[0].verdict] == caught == [verdict]


def test_an_expected_exception_that_does_not_come() -> None:
    found, _, _ = ran(
        "try:\n    1 / 0\nexcept ZeroDivisionError:\n    x = 1\n    #: raises ZeroDivisionError\n    #: x\n"
    )
    assert [claim.verdict for claim in found] == ["refuted", "holds"]
    assert found[0].values == (("raised", "nothing"),)


def test_several_claims_about_one_exception() -> None:
    assert verdicts("1 / 0\n#: raises ValueError\n#: raises ZeroDivisionError\n#: 1\n") == [
        "refuted",
        "holds",
        "not reached",
    ]


# --- the script is left alone ---------------------------------------------------------------------------------------


def test_nothing_is_left_in_the_scripts_names() -> None:
    known = set(vars(builtins))
    source = "x = 1\n#: (y := x) == 1\n#: [z for z in (x,)]\n#: raises ValueError\n"
    _, names, _ = ran(source)
    plain: dict[str, Any] = {"__name__": "__main__", "torch": torch}
    exec(source, plain)
    assert set(names) == set(plain)
    assert set(vars(builtins)) == known


def test_grad_mode_and_random_numbers_stay() -> None:
    torch.manual_seed(0)
    random.seed(0)
    wanted = torch.rand(1)
    torch.manual_seed(0)
    found, names, _ = ran("x = 1\n#: torch.rand(3).sum() > 0 and torch.set_grad_enabled(False)\nx = torch.rand(1)\n")
    assert found[0].error == ""
    assert torch.is_grad_enabled()
    assert torch.equal(names["x"], wanted)


def test_checks_warn_nobody_and_silence_nothing() -> None:
    source = """
    import warnings
    def warn():
        warnings.warn("once")
    for _ in range(3):
        warn()
        #: warnings.warn("from the check") is None
    """
    with warnings.catch_warnings(record=True) as heard:
        warnings.resetwarnings()
        warnings.simplefilter("default")
        kept = list(warnings.filters)
        assert verdicts(source) == ["holds"]
        assert list(warnings.filters) == kept
    assert [str(warning.message) for warning in heard] == ["once"]


def test_checks_run_where_recording_is_off() -> None:
    states: list[str] = []

    @contextlib.contextmanager
    def quiet() -> Iterator[None]:
        states.append("in")
        yield
        states.append("out")

    source = "x = 1\n#: look() is None\n"
    checker = ClaimChecker(claim_syntax.parse(source), quiet)
    exec(checker.instrument(source, "script.py"), {"look": lambda: states.append("look")})
    assert checker.results()[0].verdict == "holds"
    assert states == ["in", "look", "out"]


# --- the user's own lessons -----------------------------------------------------------------------------------------


def test_what_is_no_claim_is_refused_before_the_script_runs(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("x = 1\n#: what x is for\n")
    with pytest.raises(UsageError) as caught:
        find(str(path))
    assert str(caught.value) == f"{path}: line 2: this claim is not a Python expression: what x is for"


@pytest.mark.parametrize("content", [b"", b"x = (\n#: what\n", b"# coding: nothing\n", b"\xff\xfe\0", b"x = 1\n#: x\n"])
def test_what_else_is_wrong_with_a_script_is_left_to_running_it(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_bytes(content)
    assert find(str(path)) == path
    assert find(str(tmp_path)) == tmp_path


def test_an_id_of_an_article_has_to_exist(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("x = 1\n#: [000-1] holds: x\n#: [my-1] holds: x\n")
    assert find(str(path)) == path
    path.write_text("x = 1\n#: [999-9] holds: x\n")
    with pytest.raises(UsageError) as caught:
        find(str(path))
    assert str(caught.value) == f"{path}: line 2: no statement has the id 999-9; tensorlens claims shows all"


def test_the_error_that_ends_a_lesson_is_announced(tmp_path: Path) -> None:
    assert header(find("detach")) == Header(
        "detach(): the same memory, outside the graph", "RuntimeError", 42, prints=True
    )
    assert header(find("sigmoid")) == Header("The plain gradient of a sigmoid", prints=True)
    assert not header(find("detach-backward")).prints
    path = tmp_path / "mine.py"
    path.write_text("try:\n    1 / 0\n    #: raises ZeroDivisionError\nexcept ZeroDivisionError:\n    pass\n")
    assert header(path) == Header()
    assert header(tmp_path / "none.py") == Header()
    assert is_bundled(find("detach"))
    assert not is_bundled(path)


def test_the_lesson_to_begin_with_runs_and_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "lesson.py"
    write_starter(path)
    found, _, error = ran(path.read_text())
    assert isinstance(error, RuntimeError)
    assert [claim for claim in found if not claim.as_expected] == []
    assert {claim.expected for claim in found} == {"holds", "refuted"}
    path.write_text("mine")
    for name, reason in [
        ("lesson.py", "exists already, and is left as it is"),
        ("lesson", "a lesson is a Python script"),
        ("no/lesson.py", "there is no folder"),
    ]:
        with pytest.raises(UsageError, match=reason):
            write_starter(tmp_path / name)
    assert path.read_text() == "mine"
    assert [each.name for each in tmp_path.iterdir()] == ["lesson.py"]


def test_no_name_is_no_lesson() -> None:
    with pytest.raises(UsageError, match=r"^no lesson named ''; tensorlens list shows them all$"):
        find("")


def test_what_python_warns_of_in_a_source_is_not_told_again() -> None:
    """Warnings are errors here: a source that could not be read for one would be no source."""
    tree = tree_of("x = '\\d'")
    assert tree is not None
    assert [type(statement).__name__ for statement in tree.body] == ["Assign"]
