"""`pytest --tensorlens`: what it adds to the outcomes of tests, and what it leaves as it is."""

from __future__ import annotations

import re
import sys

import pytest
import torch
from support.plugin_projects import GATE, project, run, run_apart

import tensorlens.diagnostics
from tensorlens.records.error_messages import entry
from tensorlens.records.report import Diagnostic
from tensorlens.testing import compared_functions, lens_fixture, trained_parameters  # noqa: F401 - see `plugin_projects`
from tensorlens.testing.judged_report import word_for
from tensorlens.testing.page_names import page_name

pytest_plugins = "pytester"

MANY = """
    import unittest

    import pytest
    import torch
    from gate import Gate


    @pytest.fixture
    def model():
        return Gate()


    def train(model):
        model(torch.ones(2, 3)).sum().backward()


    def fail():
        x = torch.ones(3, requires_grad=True)
        y = x.sigmoid()
        y.mul_(2)
        y.sum().backward()


    def test_right():
        x = torch.ones(3, requires_grad=True)
        (x * x).sum().backward()
        assert x.grad[0] == 2


    def test_wrong(model):
        train(model)


    @pytest.mark.parametrize("rows", [1, 2])
    def test_each(model, rows):
        model(torch.ones(rows, 3)).sum().backward()


    def test_assertion():
        assert torch.ones(3).sum() == 4


    def test_error():
        fail()


    def test_expected():
        with pytest.raises(RuntimeError, match="inplace"):
            fail()


    @pytest.fixture
    def broken():
        fail()


    def test_setup(broken):
        pass


    def test_skip(model):
        pytest.skip("not here")


    @pytest.mark.xfail
    def test_expected_failure(model):
        train(model)
        raise ValueError


    @pytest.mark.xfail
    def test_unexpected_success(model):
        train(model)


    @pytest.mark.tensorlens(allow=["unversioned-write-to-saved-tensor"])
    def test_allowed(model):
        train(model)


    class TestOld(unittest.TestCase):
        def setUp(self):
            self.model = Gate()

        def test_wrong(self):
            train(self.model)

        def test_error(self):
            fail()

        def test_skip(self):
            self.skipTest("not here")
"""


def lines(result: pytest.RunResult) -> str:
    return "\n".join(result.outlines)


def outcomes(result: pytest.RunResult) -> dict[str, str]:
    """The word that `-v` prints for each test."""
    found = (re.match(r"(\S+::\S+) ([A-Z ]+?)(?: \(.*\))? +\[", line) for line in result.outlines)
    return {match[1].removeprefix("test_it.py::"): match[2] for match in found if match}


def test_outcomes(pytester: pytest.Pytester) -> None:
    project(pytester, MANY, gate=GATE)
    plain, lens, explaining = (
        outcomes(run(pytester, "-v", *option)) for option in ((), ("--tensorlens",), ("--tensorlens=explain",))
    )
    wrong = {"test_wrong", "test_each[1]", "test_each[2]", "TestOld::test_wrong"}
    assert plain == explaining
    assert {name for name, word in plain.items() if word == "PASSED"} >= wrong
    assert lens == plain | dict.fromkeys(wrong, "WRONG GRADIENTS")
    assert plain["test_setup"] == "ERROR"


def test_texts(pytester: pytest.Pytester) -> None:
    project(pytester, MANY, gate=GATE)
    result = run(pytester, "--tensorlens", "-k", "test_wrong or test_error or test_assertion or test_setup")
    text = lines(result)
    assert "test_it.py GFFEFG" in text
    failed = dict(re.findall(r"^__+ ([\w. ]+?) _+$(.*?)(?=^__+ |^=+ )", text, re.M | re.S))
    section = "- tensorlens -"
    assert {title for title, body in failed.items() if section in body} == {
        "test_error", "TestOld.test_error", "ERROR at setup of test_setup",
    }  # fmt: skip
    assert "assert tensor(3.) == 4" in failed["test_assertion"]
    assert "error[saved-tensor-modified-inplace]: `y.mul_(2)` overwrote `y`" in failed["test_error"]
    assert failed["test_wrong"].startswith("\nwarning[unversioned-write-to-saved-tensor]: `gate.data.mul_(0.5)`")
    assert "--> gate.py:11:9" in failed["test_wrong"]
    assert "run with `--tensorlens-reference`" in " ".join(failed["test_wrong"].split())
    assert "WRONG GRADIENTS test_it.py::test_wrong - warning[unversioned-write-to" in text


def test_stops_and_repeats_failures(pytester: pytest.Pytester) -> None:
    project(pytester, MANY, gate=GATE)
    assert run(pytester, "--tensorlens", "-x", "-k", "test_right or test_wrong").parseoutcomes() == {
        "passed": 1, "failed": 1, "deselected": 12,
    }  # fmt: skip
    assert set(outcomes(run(pytester, "--tensorlens", "--lf", "-v"))) == {"test_wrong"}


def test_comments_and_settings_ignore_findings(pytester: pytest.Pytester) -> None:
    test = "import torch\nfrom gate import Gate\ndef test_wrong():\n    Gate()(torch.ones(2, 3)).sum().backward()\n"
    project(pytester, test, gate=GATE)
    run(pytester, "--tensorlens").assert_outcomes(failed=1)
    commented = GATE.replace("mul_(0.5)", "mul_(0.5)  # tensorlens: ignore[unversioned-write-to-saved-tensor]")
    project(pytester, test, gate=commented)
    run_apart(pytester, "--tensorlens").assert_outcomes(passed=1)
    project(pytester, test, gate=GATE)
    pytester.makeini("[pytest]\ntensorlens_ignore = unversioned-write-to-saved-tensor\n")
    run(pytester, "--tensorlens").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("marker", "said"),
    [
        ('allow=["no-such-code"]', "no finding has the code 'no-such-code'"),
        ('allow="leaf-modified-inplace"', "allow takes a list of codes"),
        ("allowed=[]", "takes allow=[codes] and reference=True"),
    ],
)
def test_wrong_markers_are_usage_errors(pytester: pytest.Pytester, marker: str, said: str) -> None:
    project(pytester, f"import pytest\n@pytest.mark.tensorlens({marker})\ndef test_it(): pass\n")
    result = run(pytester, "--tensorlens")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert said in "\n".join((*result.outlines, *result.errlines))


def test_a_wrong_setting_is_a_usage_error(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\ntensorlens_ignore = no-such-code\n")
    result = run(pytester, "--tensorlens")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "tensorlens_ignore: no finding has the code 'no-such-code'" in "\n".join(result.errlines)


def test_a_path_may_follow_the_option(pytester: pytest.Pytester) -> None:
    project(pytester, "def test_it(): pass\n")
    run(pytester, "--tensorlens", "test_it.py").assert_outcomes(passed=1)
    result = run(pytester, "--tensorlens=all", "test_it.py")
    assert result.ret == pytest.ExitCode.USAGE_ERROR


def test_torch_that_a_test_imports_itself(pytester: pytest.Pytester) -> None:
    project(
        pytester, "def test_plain(): pass\ndef test_late():\n    import torch\ndef test_next():\n    import torch\n"
    )
    result = run_apart(pytester, "--tensorlens")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(
        ["1 test not recorded, because PyTorch was imported only while they ran:", "  test_it.py::test_late"],
        consecutive=True,
    )


def test_internal_errors_fail_no_test(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(trace: object) -> None:
        raise LookupError("no such thing")

    monkeypatch.setattr(tensorlens.diagnostics, "report_on", broken)
    project(pytester, "import torch\ndef test_it(): torch.ones(2).sum()\n")
    result = run(pytester, "--tensorlens")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*test_it.py::test_it: LookupError: no such thing"])


def test_xdist(pytester: pytest.Pytester) -> None:
    project(pytester, MANY, gate=GATE)
    result = run_apart(pytester, "--tensorlens", "-n", "2", "-k", "test_wrong or test_right or test_error")
    text = lines(result)
    assert result.parseoutcomes() == {"failed": 4, "passed": 1}
    assert "WRONG GRADIENTS test_it.py::TestOld::test_wrong - warning[unversioned" in text
    assert "error[saved-tensor-modified-inplace]" in text
    assert "--> gate.py:11:9" in text


def test_doctests(pytester: pytest.Pytester) -> None:
    project(
        pytester,
        '''
        def double():
            """
            >>> import torch
            >>> x = torch.ones(2, requires_grad=True)
            >>> y = x.exp()
            >>> y.data.mul_(2).shape
            torch.Size([2])
            >>> y.sum().backward()
            """
        ''',
    )
    run(pytester, "--doctest-modules").assert_outcomes(passed=1)
    result = run(pytester, "--doctest-modules", "--tensorlens")
    result.assert_outcomes(failed=1)
    assert "warning[unversioned-write-to-saved-tensor]" in lines(result)


def test_coroutines_and_reruns(pytester: pytest.Pytester) -> None:
    """Plugins that call test functions, or run tests again, in their own way."""
    pytester.makeconftest(
        """
        import asyncio, inspect
        import pytest
        from _pytest.runner import runtestprotocol

        @pytest.hookimpl(tryfirst=True)
        def pytest_pyfunc_call(pyfuncitem):
            if inspect.iscoroutinefunction(pyfuncitem.obj):
                asyncio.run(pyfuncitem.obj())
                return True

        def pytest_runtest_protocol(item, nextitem):
            if item.get_closest_marker("flaky"):
                for last in (False, True):
                    reports = runtestprotocol(item, nextitem=nextitem if last else item.parent, log=False)
                    if last or all(report.passed for report in reports):
                        break
                for report in reports:
                    item.ihook.pytest_runtest_logreport(report=report)
                return True

        def pytest_configure(config):
            config.addinivalue_line("markers", "flaky: run again")
        """
    )
    project(
        pytester,
        """
        import pytest, torch
        from gate import Gate

        async def test_coroutine():
            Gate()(torch.ones(2, 3)).sum().backward()

        runs = []

        @pytest.mark.flaky
        def test_flaky():
            runs.append(0)
            if len(runs) == 1:
                Gate()(torch.ones(2, 3)).sum().backward()
            torch.ones(2).sum()
        """,
        gate=GATE,
    )
    result = run(pytester, "--tensorlens", "-v", "-k", "coroutine")
    assert outcomes(result) == {"test_coroutine": "WRONG GRADIENTS"}
    result = run(pytester, "--tensorlens", "-k", "flaky")
    result.assert_outcomes(passed=1, deselected=1)


def test_functions_that_fixtures_replace(pytester: pytest.Pytester) -> None:
    """A fixture of a test, and one of a module, replace functions that a recording replaces, too."""
    before = torch.nn.Module.train, torch.nn.Module.zero_grad
    project(
        pytester,
        """
        import pytest, torch

        @pytest.fixture(scope="module", autouse=True)
        def counted():
            calls, plain = [], torch.nn.Module.train
            def train(*args, **kwargs):
                calls.append(0)
                return plain(*args, **kwargs)
            torch.nn.Module.train = train
            yield calls
            torch.nn.Module.train = plain

        @pytest.mark.parametrize("n", range(60))
        def test_it(monkeypatch, counted, n):
            plain, cleared = torch.nn.Module.zero_grad, []
            monkeypatch.setattr(torch.nn.Module, "zero_grad", lambda *args: (cleared.append(0), plain(*args)))
            model = torch.nn.Linear(1, 1)
            model.train()
            model.zero_grad()
            assert len(cleared) == 1
            assert len(counted) == n + 1
        """,
    )
    try:
        run(pytester, "--tensorlens").assert_outcomes(passed=60)
        assert torch.nn.Module.zero_grad is before[1]
        assert torch.nn.Linear(1, 1).train().training
    finally:
        torch.nn.Module.train, torch.nn.Module.zero_grad = before  # type: ignore[method-assign]


def test_nothing_is_kept_of_a_test(pytester: pytest.Pytester) -> None:
    project(
        pytester,
        """
        import gc, pytest, torch
        from tensorlens.testing.item_recording import ItemRecording

        kept = []

        @pytest.mark.parametrize("n", range(12))
        def test_it(n):
            x = torch.ones(2, requires_grad=True)
            y = x.exp()
            if n % 3 == 0:
                y.data.mul_(2)
            y.sum().backward()
            gc.collect()
            kept.append(sum(type(each) is ItemRecording for each in gc.get_objects()))
            assert kept[-1] <= kept[0] + 1  # pytest keeps the last exception, and so its frames
            assert n % 3 != 1, "on purpose"
        """,
    )
    result = run(pytester, "--tensorlens")
    result.assert_outcomes(passed=4, failed=8)
    assert lines(result).count("- AssertionError: on purpose") == 4
    assert lines(result).count("WRONG GRADIENTS test_it") == 4


def test_global_hooks_of_fixtures_stay(pytester: pytest.Pytester) -> None:
    table = sys.modules["torch.optim.optimizer"]._global_optimizer_post_hooks
    hooks = dict(table)
    project(
        pytester,
        """
        import pytest, torch
        from torch.optim.optimizer import register_optimizer_step_post_hook

        @pytest.fixture(scope="module", autouse=True)
        def steps():
            steps = []
            register_optimizer_step_post_hook(lambda *args: steps.append(0))
            return steps

        @pytest.mark.parametrize("n", range(3))
        def test_it(n, steps):
            x = torch.ones(1, requires_grad=True)
            torch.optim.SGD([x]).step()
            assert len(steps) == n + 1
        """,
    )
    try:
        run(pytester, "--tensorlens").assert_outcomes(passed=3)
        assert len(table) == len(hooks) + 1
    finally:
        table.clear()
        table.update(hooks)


def test_a_page_for_each_failing_test(pytester: pytest.Pytester) -> None:
    project(pytester, MANY, gate=GATE)
    run(pytester, "--tensorlens-html=pages", "-k", "test_wrong or test_right")
    pages = sorted((pytester.path / "pages").iterdir())
    assert [page.name for page in pages] == sorted(
        map(page_name, ("test_it.py::test_wrong", "test_it.py::TestOld::test_wrong"))
    )
    assert "unversioned-write-to-saved-tensor" in pages[0].read_text("utf-8")


def test_page_names() -> None:
    assert page_name("tests/test_a.py::test_x[a/b-1]").startswith("tests-test_a.py-test_x-a-b-1-")
    assert page_name("t.py::t[a/b]") != page_name("t.py::t[a-b]")
    assert len(page_name("t.py::t[" + 1000 * "x" + "]")) < 140


def test_mistakes_around_the_gradients_have_words_of_their_own(pytester: pytest.Pytester) -> None:
    project(
        pytester,
        """
        import torch

        def test_flag():
            trunk, head = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)
            optimizer = torch.optim.SGD([*trunk.parameters(), *head.parameters()], lr=0.1)
            trunk.requires_grad = False
            head(trunk(torch.ones(1, 2))).sum().backward()
            optimizer.step()
        """,
    )
    assert outcomes(run(pytester, "--tensorlens", "-v")) == {"test_flag": "WRONG TRAINING"}


@pytest.mark.parametrize(
    ("codes", "word"),
    [
        (["running-total-keeps-graph-alive"], "KEPT GRAPHS"),
        (["running-total-keeps-graph-alive", "optimizer-step-not-called"], "WRONG TRAINING"),
        (["state-dict-aliases-parameters"], "WRONG TRAINING"),
        (["optimizer-step-not-called", "unversioned-write-to-saved-tensor"], "WRONG GRADIENTS"),
    ],
)
def test_words(codes: list[str], word: str) -> None:
    assert all(entry(code) for code in codes)
    assert word_for([Diagnostic(code, "warning", "", "", ()) for code in codes]) == word
