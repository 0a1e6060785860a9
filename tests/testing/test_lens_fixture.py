"""The fixture `lens`: each assertion in a test that passes and in one that fails."""

from __future__ import annotations

import pytest
from support.plugin_projects import project, run

from tensorlens.testing import compared_functions, lens_fixture, trained_parameters  # noqa: F401 - see `plugin_projects`

pytest_plugins = "pytester"

NET = """
    import torch
    from torch import nn


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.enc = nn.Linear(3, 4)
            self.head = nn.Linear(4, 1)

        def forward(self, x, cut=True):
            h = torch.tanh(self.enc(x))
            if cut:
                h = h.detach()
            return self.head(h)
"""
HEAD = """
    import copy

    import pytest
    import torch
    from net import Net


    @pytest.fixture
    def net():
        return Net()


    @pytest.fixture
    def x():
        return torch.ones(2, 3)

"""


def failure(pytester: pytest.Pytester, test: str) -> list[str]:
    """The lines of the message of the only test, which fails; the test runs without any option."""
    project(pytester, HEAD + test, net=NET)
    result = run(pytester, "--tb=short")
    result.assert_outcomes(failed=1)
    found = [line.removeprefix("E   ") for line in result.outlines if line.startswith("E   ")]
    assert found[0].startswith("AssertionError: ")
    return [found[0].removeprefix("AssertionError: "), *map(str.strip, found[1:])]


def passes(pytester: pytest.Pytester, test: str) -> None:
    project(pytester, HEAD + test, net=NET)
    run(pytester).assert_outcomes(passed=1)


def test_parameters_that_are_not_trained(pytester: pytest.Pytester) -> None:
    head, *found = failure(
        pytester,
        """
    def test_it(net, x, lens):
        optimizer = torch.optim.SGD([*net.enc.parameters(), net.head.weight], lr=0.1)
        net.zero = torch.nn.Parameter(torch.zeros(1))
        net.frozen = torch.nn.Parameter(torch.zeros(1), requires_grad=False)
        for _ in range(3):
            loss = net(x).sum() + (0 * net.zero).sum()
            loss.backward()
            optimizer.step()
        lens.assert_all_trained(net)
    """,
    )
    assert head == "4 of 5 parameters are not trained:"
    cut = "no gradient: its path to `loss` (line 24) ends at net.py:14: `h.detach()` stopped the gradient; what "
    zeros = "`zero`: each gradient is exactly zero: `mul()` passes only zeros on (line 23)"
    held = "no optimizer that this test made or stepped holds it"
    assert found[0] == f"{zeros}; {held}"
    assert found[1].startswith(f"`enc.weight`: {cut}")
    assert found[1].endswith("; `SGD` (line 19) has not moved it")
    assert found[2].startswith(f"`enc.bias`: {cut}")
    assert found[3] == f"`head.bias`: {held}"


def test_trained_parameters(pytester: pytest.Pytester) -> None:
    passes(
        pytester,
        """
    @pytest.mark.parametrize("steps", [True])
    def test_it(net, x, lens, steps):
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        net(x, cut=False).sum().backward()
        lens.assert_all_trained(net)
        optimizer.step()
        lens.assert_all_trained(net)
    """,
    )


def test_a_parameter_that_does_not_move(pytester: pytest.Pytester) -> None:
    assert failure(
        pytester,
        """
    def test_it(lens):
        model = torch.nn.Linear(1, 1)
        optimizer = torch.optim.SGD([{"params": [model.weight]}, {"params": [model.bias], "lr": 0.0}], lr=0.1)
        model(torch.ones(1, 1)).sum().backward()
        optimizer.step()
        lens.assert_all_trained(model)
    """,
    ) == ["1 of 2 parameters are not trained:", "`bias`: `SGD` (line 20) has not moved it"]


def test_gradients_that_differ(pytester: pytest.Pytester) -> None:
    head, *found = failure(
        pytester,
        """
    def test_it(net, x, lens):
        net.head.weight.grad = kept = torch.ones(1, 4)
        try:
            lens.assert_same_gradients(lambda: net(x, cut=False).mean(), lambda: net(x).mean())
        finally:
            assert net.head.weight.grad is kept
            assert net.enc.weight.grad is None
    """,
    )
    assert head == "the gradients of the two functions differ:"
    assert len(found) == 2
    assert found[0].startswith("`net.enc.bias`: [")
    assert "in the first and none in the second; its path to `net(x).mean()` (line 21) ends at net.py:14" in found[0]


def test_gradients_of_another_size(pytester: pytest.Pytester) -> None:
    assert failure(
        pytester,
        """
    def test_it(lens):
        w = torch.arange(6.0, requires_grad=True)
        scale = torch.tensor([1.0, 1, 1, 1, 1, 2])
        lens.assert_same_gradients(lambda: w.sum(), lambda: (w * scale).sum())
    """,
    ) == ["the gradients of the two functions differ:", "`w`: [1] in the first and [2] in the second (from element 5)"]


def test_the_same_gradients(pytester: pytest.Pytester) -> None:
    passes(
        pytester,
        """
    def test_it(net, x, lens):
        noisy = lambda: (net(x, cut=False) * torch.rand(2, 1)).mean()
        lens.assert_same_gradients(noisy, lambda: noisy() + 0 * net.head.bias.exp().sum())
        with pytest.raises(AssertionError):
            lens.assert_same_gradients(noisy, lambda: 1.1 * noisy())
        lens.assert_same_gradients(noisy, lambda: 1.1 * noisy(), rtol=0.2)
        with pytest.raises(TypeError, match=r"a loss, a tensor with one element, not a tensor of shape \\(2, 3\\)"):
            lens.assert_same_gradients(lambda: x, lambda: x)
    """,
    )


def test_shared_storage(pytester: pytest.Pytester) -> None:
    head, *found = failure(
        pytester,
        """
    def test_it(net, lens):
        target = Net()
        for old, new in zip(target.parameters(), net.parameters()):
            old.data = new.data
        lens.assert_no_shared_storage(net, target)
    """,
    )
    assert head == "storage is shared:"
    line = "share storage, since `old.data = ...` (line 21)"
    assert found[0] == f"`enc.weight` of the first and `enc.weight` of the second {line}"
    assert len(found) == 4


def test_storage_that_is_not_shared(pytester: pytest.Pytester) -> None:
    passes(
        pytester,
        """
    def test_it(net, x, lens):
        optimizer = torch.optim.Adam(net.parameters())
        net(x, cut=False).sum().backward()
        optimizer.step()
        lens.assert_no_shared_storage(net, copy.deepcopy(net))
        lens.assert_no_shared_storage(list(optimizer.state.values()), net)
        lens.assert_no_shared_storage(x[:1], x[1:])
        with pytest.raises(AssertionError, match="are one tensor"):
            lens.assert_no_shared_storage(net, optimizer)
        with pytest.raises(AssertionError, match=r"`x` and .* share storage, since `x\\[:1\\]` \\(line 2"):
            lens.assert_no_shared_storage(x, [x[:1]])
    """,
    )


def test_report_and_findings(pytester: pytest.Pytester) -> None:
    passes(
        pytester,
        """
    def test_it(lens):
        w = torch.ones(2, requires_grad=True)
        y = w.exp()
        assert lens.findings == ()
        y.data.mul_(2)
        y.sum().backward()
        assert [each.code for each in lens.findings] == ["unversioned-write-to-saved-tensor"]
        report = lens.report()
        assert report.trace.script.path == "test_it.py"
        assert "`y`" in report.diagnostics[0].title
        assert report.standing_out is not None
    """,
    )


def test_a_fixture_of_the_same_name_is_left_alone(pytester: pytest.Pytester) -> None:
    passes(
        pytester,
        """
    @pytest.fixture
    def lens():
        return "glass"

    def test_it(lens, request):
        assert lens == "glass"
        assert not request.config.pluginmanager.hasplugin("tensorlens-recording")
    """,
    )
