"""Weights of a loss by class that grow with the class, and focal factors that are one number for a batch."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.script_under_training import said

_SCRIPT = """
    import torch
    import torch.nn.functional as F
    from torch import nn

    torch.manual_seed(0)
    x = torch.randn(120, 4)
    LABELS
    net = nn.Linear(4, WIDTH)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for index in torch.randperm(120).split(40):
        out, target = net(x[index]), y[index]
        LOSS
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
_BINARY = "loss = F.binary_cross_entropy_with_logits(out.squeeze(1), target, pos_weight=weight)"
_CLASSES = "loss = F.cross_entropy(out, target, weight=weight)"


def _texts(tmp_path: Path, labels: str, loss: str, width: int, *words: str) -> list[str]:
    lines = labels.strip().replace("\n", "\n    ")
    script = _SCRIPT.replace("LABELS", lines).replace("LOSS", loss.replace("\n", "\n        "))
    return [each.text for each in said(tmp_path, script.replace("WIDTH", str(width)), *words)[0]]


@pytest.mark.parametrize(
    ("labels", "count"),
    [
        ("y = (x[:, 0] > 1).float()\nweight = y.sum() / (1 - y).sum()", 1),
        ("y = (x[:, 0] > 1).float()\nn_pos = y.sum()\nweight = (n_pos / (len(y) - n_pos)).clamp(min=0.01)", 1),
        ("y = (x[:, 0] > 1).float()\nrate = y.mean()\nweight = rate / (1 - rate)", 1),
        ("y = (x[:, 0] > 1).float()\nweight = torch.div((y == 1).sum(), (y == 0).sum())", 1),
        ("healthy = (x[:, 0] < 1).float()\ny = 1 - healthy\nweight = healthy.sum() / (1 - healthy).sum()", 0),
        ("healthy = x[:, 0] < 1\ny = (~healthy).float()\nweight = healthy.sum() / (healthy == 0).sum()", 0),
        ("healthy = (x[:, 0] < 1).float()\ny = 1 - healthy\nweight = (1 - healthy).sum() / healthy.sum()", 1),
        ("y = (x[:, 0] > 1).float()\nweight = (1 - y).sum() / y.sum()", 0),
        ("y = (x[:, 0] > 1).float()\nrate = y.mean()\nweight = (1 - rate) / rate", 0),
        ("y = (x[:, 0] > 1).float()\nweight = torch.div((y == 0).sum(), (y == 1).sum())", 0),
        ("y = (x[:, 0] > 1).float()\nz = (x[:, 1] > 0).float()\nweight = z.sum() / (1 - z).sum()", 0),
    ],
)
def test_a_weight_of_ones_by_zeros_is_named(tmp_path: Path, labels: str, count: int) -> None:
    assert len(_texts(tmp_path, labels, _BINARY, 1, "the rarer the ones are")) == count


@pytest.mark.parametrize(
    ("weight", "count"),
    [
        ("counts = torch.bincount(y, minlength=3).float()\nweight = counts / counts.sum()", 1),
        ("weight = (torch.bincount(y, minlength=3) / len(y)).sqrt() * 3", 1),
        ("counts = torch.bincount(y, minlength=3).float()\nweight = counts.sum() / counts", 0),
        ("counts = torch.bincount(y, minlength=3).float()\nweight = 1 / (counts / counts.sum())", 0),
        ("weight = torch.div(torch.bincount(y, minlength=3), len(y))", 1),
        ("weight = torch.bincount(y, minlength=3).div(len(y))", 1),
        ("counts = torch.bincount(y, minlength=3).float()\nweight = torch.div(len(y), counts)", 0),
        ("w = torch.div(120, torch.bincount(y, minlength=3))\nweight = w / w.sum()", 0),
        ("w, n = torch.bincount(y, minlength=3), len(y)\nw = torch.true_divide(n, w)\nweight = w / w.sum()", 0),
        ("weight = 1 - torch.bincount(y, minlength=3) / len(y)", 0),
        ("weight = len(y) / (3 * torch.bincount(y, minlength=3).float())", 0),
    ],
)
def test_weights_that_are_shares_of_the_classes_are_named(tmp_path: Path, weight: str, count: int) -> None:
    labels = "y = (x[:, 0] > 0.5).long() + (x[:, 0] > 1.2).long()\n" + weight
    assert len(_texts(tmp_path, labels, _CLASSES, 3, "the rarer a class is")) == count


@pytest.mark.parametrize(
    ("loss", "count"),
    [
        ("ce = F.cross_entropy(out, target)\nloss = (1 - torch.exp(-ce)) ** 2 * ce", 1),
        ("ce = F.cross_entropy(out, target)\npt = (-ce).exp()\nloss = 0.25 * torch.pow(1 - pt, 2.0) * ce", 1),
        ("ce = nn.CrossEntropyLoss()(out, target)\ngamma = 2\nloss = ce * ((1 - (-ce).exp()).detach() ** gamma)", 1),
        ("ce = F.cross_entropy(out, target, reduction='none')\nloss = ((1 - torch.exp(-ce)) ** 2 * ce).mean()", 0),
        ("ce = F.cross_entropy(out, target, reduction='none').mean()\nloss = (1 - torch.exp(-ce)) ** 2 * ce", 1),
        ("ce = F.cross_entropy(out, target, reduction='sum')\nloss = (1 - torch.exp(-ce)) ** 2 * ce", 0),
        ("of = nn.CrossEntropyLoss()\nce = of(out, target)\nloss = (1 - torch.exp(-ce)) ** 2 * ce", 1),
        ("of = nn.CrossEntropyLoss(reduction='sum')\nce = of(out, target)\nloss = (1 - torch.exp(-ce)) ** 2 * ce", 0),
        ("ce = nn.CrossEntropyLoss(reduction='sum')(out, target)\nloss = (1 - torch.exp(-ce)) ** 2 * ce", 0),
        ("ce = F.cross_entropy(out, target)\nloss = ce + 0.1 * ce ** 2", 0),
        ("s = F.nll_loss(out.log_softmax(1), target)\nloss = torch.expm1(-s).neg().pow(2.0) * s", 1),
        ("lp = -F.cross_entropy(out, target)\npt = torch.exp(lp)\nloss = -((1 - pt) ** 2) * lp", 1),
        ("s = -out.log_softmax(1).gather(1, target[:, None]).mean()\nloss = (1 - torch.exp(-s)).square().mul(s)", 1),
        ("s = F.cross_entropy(out, target)\nw = 1 - torch.exp(-s)\nloss = w * w * F.cross_entropy(out, target)", 1),
        (
            "ce = {'loss': F.cross_entropy}['loss'](out, target)\nloss = (torch.ones_like(ce) - (-ce).exp()) ** 2 * ce",
            1,
        ),
        ("s = F.cross_entropy(out, target, reduction='none')\nloss = ((1 - (-s.mean()).exp()) ** 2 * s).mean()", 1),
        ("s = -out.log_softmax(1).gather(1, target[:, None])\nloss = (-torch.expm1(-s)).pow(2).mul(s).mean()", 0),
        ("s = F.cross_entropy(out, target)\nhard = (1 - torch.exp(-s.detach())) ** 2\nloss = hard * s", 0),
        ("s = F.cross_entropy(out, target)\nfocal = (1 - torch.exp(-s.detach())) ** 2\nloss = focal * s", 1),
        ("s = (out - 1).square().mean()\nloss = (1 - torch.exp(-s)) ** 2 * s", 0),
        ("s = F.cross_entropy(out, target)\nloss = (1 - torch.exp(-s)) ** 2 * (out - 1).square().mean()", 0),
        (
            "loss = sum(((1 - torch.exp(-s)) ** 2 * s) for s in (F.cross_entropy(k * out, target) for k in (1, -1)))",
            0,
        ),
        (
            (
                "one, other = F.cross_entropy(out, target), F.cross_entropy(-out, target)\n"
                "loss = (1 - torch.exp(-one)) ** 2 * one + (1 - torch.exp(-other)) ** 2 * other"
            ),
            0,
        ),
    ],
)
def test_a_focal_factor_of_a_mean_is_named(tmp_path: Path, loss: str, count: int) -> None:
    labels = "y = (x[:, 0] > 0.5).long() + (x[:, 0] > 1.2).long()"
    assert len(_texts(tmp_path, labels, loss, 3, "the factor of the loss is one number")) == count


@pytest.mark.parametrize(
    "scores",
    ["head(rnn(x)[0])[0]", "head(rnn(x)[0][0])", "head(rnn(x[0])[0])", "head(x[0, : 4 + step])"],
    ids=["taken last", "taken first", "steps", "lengths"],
)
def test_focal_factors_of_a_text_are_left_alone(tmp_path: Path, scores: str) -> None:
    script = f"""
        import torch
        import torch.nn.functional as F
        from torch import nn

        rnn, head = nn.GRU(6, 6, batch_first=True), nn.Linear(6, 5)
        optimizer = torch.optim.SGD([*rnn.parameters(), *head.parameters()], lr=0.1)
        for step in range(6):
            x, y = torch.randn(1, 9, 6), torch.randint(0, 5, (9,))
            out = {scores}
            nll = F.cross_entropy(out, y[: len(out)])
            loss = (1 - torch.exp(-nll)).pow(2) * nll
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """
    assert said(tmp_path, script, "the factor of the loss is one number")[0] == []


_PT = "pt = out.softmax(1).gather(1, target[:, None])"
_ROWS = "F.cross_entropy(out, target, reduction='none')"


@pytest.mark.parametrize(
    ("loss", "count"),
    [
        (_PT + "\nloss = ((1 - pt) ** 2 * F.cross_entropy(out, target)).mean()", 1),
        (f"pt = {_ROWS}.neg().exp().detach()\nloss = ((1 - pt).square() * F.cross_entropy(out, target)).mean()", 1),
        (_PT + "\nloss = (0.25 * (1 - pt) ** 2).mul(F.nll_loss(out.log_softmax(1), target)).sum()", 1),
        (_PT + "\nloss = (1 - pt).pow(2).mean() * F.cross_entropy(out, target)", 0),
        (_PT + f"[:, 0]\nloss = ((1 - pt) ** 2 * {_ROWS}).mean()", 0),
    ],
)
def test_focal_factors_that_multiply_a_mean_are_named(tmp_path: Path, loss: str, count: int) -> None:
    labels = "y = (x[:, 0] > 0.5).long() + (x[:, 0] > 1.2).long()"
    assert len(_texts(tmp_path, labels, loss, 3, "weighs the loss of all of them")) == count


def test_the_call_that_takes_the_mean_is_named(tmp_path: Path) -> None:
    labels = "y = (x[:, 0] > 0.5).long() + (x[:, 0] > 1.2).long()"
    loss = "rows = F.cross_entropy(out, target, reduction='none')\nce = rows.mean()\nloss = (1 - (-ce).exp()) ** 2 * ce"
    (text,) = _texts(tmp_path, labels, loss, 3, "the factor of the loss is one number")
    assert text.startswith("`rows.mean()` returns the mean of 40 rows")


def test_shares_of_the_other_classes_are_not_named(tmp_path: Path) -> None:
    labels = "z = (x[:, 0] < 1).long()\ny = 1 - z\nweight = torch.bincount(z, minlength=2) / len(z)"
    assert _texts(tmp_path, labels, _CLASSES, 2, "the rarer a class is") == []


_SHARES = "[n / 120 for n in np.bincount(y.numpy(), minlength=3)]"


@pytest.mark.parametrize(
    ("weight", "count"),
    [
        ("weight = torch.tensor(SHARES, dtype=torch.float32)", 1),
        ("weight = torch.tensor([(y == c).float().mean().item() for c in range(3)])", 1),
        ("weight = torch.from_numpy(np.sqrt(SHARES)).float()", 1),
        ("weight = 3 * torch.tensor([1 / n for n in SHARES], dtype=torch.float32).reciprocal()", 1),
        ("weight = torch.tensor([1 / n for n in SHARES], dtype=torch.float32)", 0),
        ("weight = torch.tensor([1 - n for n in SHARES], dtype=torch.float32)", 0),
        ("weight = torch.tensor([3.0, 1.0, 2.0])", 0),
        # the rows are drawn evenly by class, and the weights set the shares back to those of the data
        ("weight = torch.tensor(SHARES, dtype=torch.float32)\nEVEN = torch.multinomial((1 / weight)[y], 480, True)", 0),
    ],
)
def test_weights_of_numpy_that_grow_with_the_classes_are_named(tmp_path: Path, weight: str, count: int) -> None:
    labels = "import numpy as np\ny = (x[:, 0] > 0).long() + (x[:, 0] > 0.7).long()\n" + weight.replace(
        "SHARES", _SHARES
    )
    rows = "EVEN" if "EVEN" in weight else "torch.arange(120).repeat(4)"
    script = _SCRIPT.replace("torch.randperm(120).split(40)", f"{rows}.split(60)")
    script = script.replace("LABELS", labels.replace("\n", "\n    ")).replace("LOSS", _CLASSES).replace("WIDTH", "3")
    assert len(said(tmp_path, script, "the rarer a class is")[0]) == count


@pytest.mark.parametrize(("weight", "count"), [("n / (120 - n)", 1), ("(120 - n) / n", 0), ("0.25", 0)])
def test_a_measured_weight_of_ones_is_named(tmp_path: Path, weight: str, count: int) -> None:
    labels = f"y = (x[:, 0] > 1).float()\n    n = int(y.sum())\n    weight = torch.tensor([{weight}])"
    script = _SCRIPT.replace("torch.randperm(120).split(40)", "torch.arange(120).repeat(4).split(60)")
    script = script.replace("LABELS", labels).replace("LOSS", _BINARY).replace("WIDTH", "1")
    assert len(said(tmp_path, script, "the rarer the ones are")[0]) == count
