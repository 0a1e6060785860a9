"""Checks what `--training` says about losses that are given probabilities, and about states that load nothing."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from support.script_under_training import said

from tensorlens.records.source import line_at

START = """
import torch
from torch import nn
from torch.nn import functional as F
torch.manual_seed(0)
x, y, target = torch.randn(16, 4), torch.randint(0, 3, (16,)), torch.randn(16, 3).softmax(1)
net = nn.Linear(4, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)

def run(loss, steps=3):
    for _ in range(steps):
        opt.zero_grad()
        loss().backward()
        opt.step()
"""
UNFIT = {
    "scores for logarithms of probabilities": (
        "`F.nll_loss(net(x), y)` takes logarithms of probabilities, and is given the result of a linear",
        """
        run(lambda: F.nll_loss(net(x), y))  # here
        """,
    ),
    "softmax in the model": (
        "`criterion(model(x), y)` computes the softmax of what it is given, which is a softmax already",
        """
        model, criterion = nn.Sequential(net, nn.Softmax(dim=1)), nn.CrossEntropyLoss()
        run(lambda: criterion(model(x), y))  # here
        """,
    ),
    "softmax of each position": (
        "computes the softmax of what it is given, which is a softmax already",
        """
        def loss():
            p = net(x).view(4, 4, 3).softmax(-1)
            return F.cross_entropy(p.transpose(1, 2), y.view(4, 4))  # here
        run(loss)
        """,
    ),
    "a method that predicts": (
        "computes the softmax of what it is given, which is a softmax already",
        """
        def predict(x):
            return torch.softmax(net(x), dim=1)
        run(lambda: F.cross_entropy(target=y, input=predict(x)))  # here
        """,
    ),
    "sigmoid and logits": (
        "computes the sigmoid of what it is given, which is a sigmoid already",
        "run(lambda: F.binary_cross_entropy_with_logits(torch.sigmoid(net(x)), target))  # here\n",
    ),
    "sigmoid by another name": (
        "computes the sigmoid of what it is given, which is a sigmoid already",
        "run(lambda: F.binary_cross_entropy_with_logits(torch.special.expit(net(x)), target))  # here\n",
    ),
    "relu and logits": (
        "computes the sigmoid of what it is given, which is the result of a relu, and never negative",
        "run(lambda: nn.BCEWithLogitsLoss()(net(x).relu(), target))  # here\n",
    ),
    "a clamp at zero": (
        "computes the sigmoid of what it is given, which is the result of a clamp, and never negative",
        "run(lambda: F.binary_cross_entropy_with_logits(torch.clamp(net(x), 0), target))  # here\n",
    ),
    "the greater of zero": (
        "computes the sigmoid of what it is given, which is the result of a maximum, and never negative",
        "zero = torch.zeros(())\nrun(lambda: nn.BCEWithLogitsLoss()(torch.maximum(net(x), zero), target))  # here\n",
    ),
    "softplus of many labels": (
        "computes the sigmoid of what it is given, which is the result of a softplus, and never negative",
        "run(lambda: F.multilabel_soft_margin_loss(F.softplus(net(x)), target))  # here\n",
    ),
    "probabilities in nll_loss": (
        "takes logarithms of probabilities, and is given the result of a softmax",
        "run(lambda: F.nll_loss(net(x).softmax(1), y))  # here\n",
    ),
    "probabilities in kl_div": (
        "takes logarithms of probabilities, and is given the result of a softmax",
        "run(lambda: F.kl_div(F.softmax(net(x), 1), target, reduction='batchmean'))  # here\n",
    ),
    "scores in ctc_loss": (
        "`F.ctc_loss(...)` takes logarithms of probabilities, and is given the result of a linear",
        """
        sizes = torch.full((2,), 8), torch.full((2,), 3)
        run(lambda: F.ctc_loss(net(x).view(8, 2, 3), torch.ones(2, 3, dtype=torch.int64), *sizes))  # here
        """,
    ),
    "rates for their logarithms": (
        "takes logarithms of rates, and is given the result of a softplus",
        """
        counts = torch.poisson(target.exp())
        nll = nn.PoissonNLLLoss()
        run(lambda: nll(F.softplus(net(x)) + 1e-6, counts))  # here
        """,
    ),
    "rates with limits": (
        "takes logarithms of rates, and is given the result of `exp()`",
        """
        counts = torch.poisson(target.exp())
        run(lambda: F.poisson_nll_loss(net(x).exp().clamp(1e-6, 1e4), counts))  # here
        """,
    ),
    "rates by a function": (
        "takes logarithms of rates, and is given the result of `exp()`",
        """
        counts = torch.poisson(target.exp())
        run(lambda: F.poisson_nll_loss(net(x).exp(), counts, full=True))  # here
        """,
    ),
}
FIT = {
    "scores": "run(lambda: F.cross_entropy(net(x), y))\n",
    "log_softmax": "run(lambda: F.nll_loss(net(x).log_softmax(1), y))\n",
    "log of softmax": "run(lambda: F.nll_loss(net(x).softmax(1).log(), y))\n",
    "probabilities as target": "run(lambda: F.cross_entropy(net(x), net(x).softmax(1).detach()))\n",
    "keywords": "run(lambda: F.cross_entropy(target=net(x).softmax(1).detach(), input=net(x)))\n",
    "a prediction as target": "run(lambda: F.cross_entropy(target=net(x).softmax(1), input=net(x)))\n",
    "the other direction": """
        run(lambda: F.kl_div(target=net(x).softmax(1), input=net(x + 1).log_softmax(1), reduction='batchmean'))
        """,
    "two predictions": """
        def loss():
            p, q = net(x), net(x + 0.1)
            return F.kl_div(p.log_softmax(1), q.softmax(1), reduction='batchmean')
        run(loss)
        """,
    "sigmoid and probabilities": "run(lambda: F.binary_cross_entropy(net(x).sigmoid(), target))\n",
    "a scale on bounded scores": "run(lambda: F.cross_entropy(10 * net(x).sigmoid(), y))\n",
    "attention before the last layer": """
        last = nn.Linear(3, 3)
        run(lambda: F.cross_entropy(last(net(x).softmax(1)), y))
        """,
    "limits on both sides": "run(lambda: F.binary_cross_entropy_with_logits(net(x).clamp(-9, 9), target))\n",
    "a limit above": "run(lambda: F.binary_cross_entropy_with_logits(net(x).clamp(max=9), target))\n",
    "a distance from a threshold": """
        run(lambda: F.binary_cross_entropy_with_logits(net(x).clamp(min=0) - 1, target))
        """,
    "nobody is worse than chance": "run(lambda: F.binary_cross_entropy_with_logits(F.softplus(net(x)), target))\n",
    "a relu before cross entropy": "run(lambda: F.cross_entropy(net(x).relu(), y))\n",
    "only an evaluation": """
        run(lambda: F.cross_entropy(net(x), y))
        with torch.no_grad():
            F.cross_entropy(net(x).softmax(1), y)
        """,
    "rates": """
        counts = torch.poisson(target.exp())
        nll = nn.PoissonNLLLoss(log_input=False)
        run(lambda: nll(F.softplus(net(x)), counts) + F.poisson_nll_loss(net(x).exp(), counts, False))
        """,
    "logarithms of rates": """
        counts = torch.poisson(target.exp())
        nll = nn.PoissonNLLLoss()
        run(lambda: nll(net(x), counts) + nll(F.softplus(net(x)).log(), counts))
        """,
    "limits of logarithms of rates": """
        counts = torch.poisson(target.exp())
        nll = nn.PoissonNLLLoss()
        run(lambda: nll(net(x).clamp(min=0, max=10), counts) + nll(torch.clamp(net(x), 0.0, 9.0), counts))
        run(lambda: nll(F.hardtanh(net(x), 0.0, 10.0), counts) + nll(nn.ReLU6()(net(x)), counts))
        """,
}
STATES = {
    "names of a wrapper": """
        saved = {f"module.{k}": v for k, v in net.state_dict().items()}
        new = nn.Linear(4, 3)
        new.load_state_dict(saved, strict=False)  # here
        """,
    "a checkpoint with more than the model": """
        saved = {"model": net.state_dict(), "epoch": 3}
        nn.Linear(4, 3).load_state_dict(saved, strict=False)  # here
        """,
    "a part": """
        model = nn.Sequential(net, nn.Linear(3, 1))
        nn.Linear(4, 3).load_state_dict(model.state_dict(), strict=False)  # here
        """,
    "in a function": """
        def restore(model, state):
            model.load_state_dict(state, strict=False)  # here
            return model
        restore(nn.Sequential(nn.BatchNorm1d(4)), net.state_dict())
        """,
}
LOADED = {
    "all": "nn.Linear(4, 3).load_state_dict(net.state_dict())\n",
    "without the head": """
        model = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 5))
        saved = {f"0.{k}": v for k, v in net.state_dict().items()}
        model.load_state_dict(saved, strict=False)
        """,
    "another head": """
        class Model(nn.Module):
            def __init__(self, head):
                super().__init__()
                self.encoder = nn.Linear(4, 3)
                setattr(self, head, nn.Linear(3, 2))
        Model("classes").load_state_dict(Model("head").state_dict(), strict=False)
        """,
    "only a bias": "net.load_state_dict({'bias': torch.zeros(3), 'other': x}, strict=False)\n",
    "a running mean": "nn.BatchNorm1d(4).load_state_dict({'running_mean': torch.ones(4)}, strict=False)\n",
    "an empty dict": "net.load_state_dict({}, strict=False)\n",
    "a module without tensors": "nn.ReLU().load_state_dict(net.state_dict(), strict=False)\n",
    "an error": """
        try:
            net.load_state_dict({'w': x})
        except RuntimeError:
            pass
        """,
}


PARTLY = {
    "a prefix of a part": """
        deep = nn.Sequential(net, nn.Linear(3, 3))
        saved = {f"body.{k}" if k[0] == "0" else k: v for k, v in deep.state_dict().items()}
        nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 3)).load_state_dict(saved, strict=False)  # here
        """,
    "a prefix too little": """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.encoder, self.head = nn.Sequential(nn.Linear(4, 3)), nn.Linear(3, 2)
        saved = {k.removeprefix("encoder."): v for k, v in Model().state_dict().items()}
        Model().load_state_dict(saved, strict=False)  # here
        """,
}


@pytest.fixture(autouse=True)
def shows_exceptions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORLENS_DEBUG", "1")


@pytest.mark.parametrize("kind", UNFIT)
def test_probabilities_that_are_taken_for_scores_are_named(kind: str, tmp_path: Path) -> None:
    sentence, script = UNFIT[kind]
    found, _ = said(tmp_path, START + textwrap.dedent(script), "what it is given", "logarithms")
    assert [sentence in each.text for each in found] == [True], [each.text for each in found]
    assert "# here" in line_at((tmp_path / "script.py").read_text(), found[0].labels[0].span.line)


@pytest.mark.parametrize("kind", FIT)
def test_fit_inputs_are_no_news(kind: str, tmp_path: Path) -> None:
    assert said(tmp_path, START + textwrap.dedent(FIT[kind]), "what it is given", "logarithms")[0] == []


@pytest.mark.parametrize("kind", STATES)
def test_a_state_that_loads_nothing_is_named(kind: str, tmp_path: Path) -> None:
    script = START + textwrap.dedent(STATES[kind]) + "run(lambda: F.cross_entropy(net(x), y))\n"
    found, _ = said(tmp_path, script, "loads nothing")
    assert len(found) == 1
    assert "# here" in line_at((tmp_path / "script.py").read_text(), found[0].labels[0].span.line)


CALLS = """
from torch.func import functional_call
deep = nn.Sequential(net)
own = lambda: {"0.weight": net.weight * 1.0, "0.bias": net.bias * 1.0}
"""
UNUSED = {
    "one other name": "run(lambda: F.cross_entropy(functional_call(deep, {'a': x}, x), y))  # here",
    "underscores": """
        class Model(nn.Module):
            def forward(self, x):
                renamed = {name.replace(".", "_"): value for name, value in own().items()}
                return functional_call(deep, renamed, (x,))  # here
        run(lambda: F.cross_entropy(Model()(x), y))
        """,
}
USED = {
    "all": "run(lambda: F.cross_entropy(functional_call(deep, own(), (x,)), y))",
    "some, and others": "run(lambda: F.cross_entropy(functional_call(deep, own() | {'a': x}, (x,)), y))",
    "none is given": "run(lambda: F.cross_entropy(functional_call(deep, {}, (x,)), y))",
    "two dicts": "run(lambda: F.cross_entropy(functional_call(deep, ({'a': x}, own()), (x,)), y))",
    "an attribute": """
        class Plain(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale, self.net = torch.ones(1), net
            def forward(self, x):
                return self.scale * self.net(x)
        plain = Plain()
        run(lambda: F.cross_entropy(functional_call(plain, {'scale': 2 * torch.ones(1)}, (x,)), y))
        """,
}


@pytest.mark.parametrize("kind", UNUSED)
def test_a_functional_call_that_uses_nothing_is_named(kind: str, tmp_path: Path) -> None:
    script = START + CALLS + textwrap.dedent(UNUSED[kind])
    found, _ = said(tmp_path, script, "uses nothing of its dict")
    assert len(found) == 1
    assert "# here" in line_at((tmp_path / "script.py").read_text(), found[0].labels[0].span.line)


@pytest.mark.parametrize("kind", USED)
def test_a_functional_call_that_uses_something_is_no_news(kind: str, tmp_path: Path) -> None:
    script = START + CALLS + textwrap.dedent(USED[kind])
    assert said(tmp_path, script, "uses nothing of its dict")[0] == []


@pytest.mark.parametrize("kind", PARTLY)
def test_a_load_that_another_prefix_keeps_from_some_tensors_is_named(kind: str, tmp_path: Path) -> None:
    script = START + textwrap.dedent(PARTLY[kind]) + "run(lambda: F.cross_entropy(net(x), y))\n"
    found, _ = said(tmp_path, script, "another prefix")
    assert len(found) == 1
    assert "# here" in line_at((tmp_path / "script.py").read_text(), found[0].labels[0].span.line)


@pytest.mark.parametrize("kind", LOADED)
def test_a_state_that_loads_something_is_no_news(kind: str, tmp_path: Path) -> None:
    script = START + textwrap.dedent(LOADED[kind]) + "run(lambda: F.cross_entropy(net(x), y))\n"
    assert said(tmp_path, script, "loads nothing", "another prefix")[0] == []
