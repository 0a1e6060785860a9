"""`--tensorlens-reference`: a second run of each test, with copies of what autograd saves."""

from __future__ import annotations

import pytest
from support.plugin_projects import GATE, project, run
from torch.utils import checkpoint  # noqa: F401 - see `plugin_projects`

from tensorlens.testing import item_recording  # noqa: F401
from tensorlens.tracer.reference import saved_copies  # noqa: F401

pytest_plugins = "pytester"

TESTS = """
    import os

    import pytest
    import torch
    from gate import Gate

    log = []


    @pytest.fixture(scope="module")
    def shared():
        log.append("set up")
        yield torch.nn.Linear(3, 3)
        log.append("torn down")


    @pytest.fixture
    def model():
        return Gate()


    def test_wrong(model):
        model(torch.rand(2, 3)).sum().backward()


    def test_write_that_harms_nothing():
        x = torch.ones(3, requires_grad=True)
        y = x + 1
        seen = y.detach().numpy()
        total = (2 * y).sum()
        seen *= 3
        total.backward()


    def test_random(model):
        x = torch.ones(3, requires_grad=True)
        (x * torch.rand(3)).sum().backward()


    def test_that_adds_up(shared):
        shared(torch.ones(2, 3)).sum().backward()
        log.append("ran")


    def test_not_repeatable():
        x = torch.ones(3, requires_grad=True)
        (x * int.from_bytes(os.urandom(4), "little")).sum().backward()


    def test_only_once():
        assert not log.count("once")
        log.append("once")
        x = torch.ones(3, requires_grad=True)
        x.exp().sum().backward()


    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, gradient):
            return 3 * gradient


    def test_formula():
        x = torch.ones(3, requires_grad=True)
        Twice.apply(x).sum().backward()


    def test_without_torch():
        assert log == ["set up", "ran", "ran", "ran", "once"]


    def test_failing(model):
        model(torch.rand(2, 3)).sum().backward()
        raise ValueError("on purpose")
"""


def test_each_test_runs_twice(pytester: pytest.Pytester) -> None:
    project(pytester, TESTS, gate=GATE)
    result = run(pytester, "--tensorlens-reference", "-v")
    text = "\n".join(result.outlines)
    words = dict(line.split("::")[1].split(" ", 1) for line in result.outlines if line.startswith("test_it.py::"))
    assert {name for name, word in words.items() if word.startswith("WRONG GRADIENTS")} == {
        "test_wrong",
        "test_formula",
    }
    result.assert_outcomes(passed=6, failed=3)
    assert "note: compared: the gradient of `" in text
    assert "custom-function-wrong-backward" in text
    result.stdout.fnmatch_lines(
        [
            "3 tests not compared as a whole:",
            "  test_it.py::test_that_adds_up: a third run, without copies, has other gradients, too",
            "  test_it.py::test_not_repeatable: the two runs are different: this pass starts from *",
            "  test_it.py::test_only_once: it does not pass a second time",
        ],
        consecutive=True,
    )


def test_the_marker_asks_for_one_test(pytester: pytest.Pytester) -> None:
    project(
        pytester,
        """
        import pytest, torch

        runs = []

        def train():
            runs.append(0)
            x = torch.ones(3, requires_grad=True)
            x.exp().sum().backward()

        @pytest.mark.tensorlens(reference=True)
        def test_twice():
            train()

        def test_count():
            assert len(runs) == 2
            train()

        def test_once():
            assert len(runs) == 3
        """,
    )
    run(pytester, "--tensorlens").assert_outcomes(passed=3)


def test_errors_of_the_last_teardown_are_reported(pytester: pytest.Pytester) -> None:
    project(
        pytester,
        """
        import pytest, torch

        @pytest.fixture(scope="module")
        def broken():
            yield
            raise ValueError("on purpose")

        def test_it(broken):
            torch.ones(3, requires_grad=True).sum().backward()
        """,
    )
    run(pytester, "--tensorlens-reference").assert_outcomes(passed=1, errors=1)
