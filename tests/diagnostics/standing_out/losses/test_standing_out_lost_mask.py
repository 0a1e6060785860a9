"""Checks the sentences about masks that hide nothing from a loss."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

HEAD = "net = nn.Linear(3, 4)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\nfor _ in range(3):\n    "
END = "    opt.zero_grad()\n    loss.backward()\n    opt.step()\n"
LATE = (
    HEAD + "x, y, mask = torch.randn(8, 3), torch.randint(0, 4, (8,)), torch.tensor([1.0, 0] * 4)\n"
    "    each = nn.functional.cross_entropy(net(x), y)  #!\n"
    "    loss = (each * mask).sum() / mask.sum()\n" + END
)
LEAST = (
    HEAD + "x, y = torch.randn(8, 3), torch.arange(8) % 4\n"
    "    same = y[:, None] == y[None, :]\n"
    "    distances = torch.cdist(net(x), net(x))\n"
    "    negative = (distances * (~same).float()).min(dim=1).values  #!\n"
    "    positive = (distances * same.float()).max(dim=1).values\n"
    "    loss = nn.functional.relu(positive - negative + 0.2).mean()\n" + END
)
SETS = "sets to 0 by the mask"
WRONG = {
    "the mean of a loss": (LATE, "not the loss of each element"),
    "the mean of an error": (
        LATE.replace("nn.functional.cross_entropy(net(x), y)", "nn.functional.mse_loss(net(x)[:, 0], y.float())"),
        "not the loss of each element"),
    "the mean of a masked mean": (LATE.replace(".sum() / mask.sum()", ".mean()"), "not the loss of each element"),
    "a focal loss": (
        LATE.replace("cross_entropy(net(x), y)", "binary_cross_entropy_with_logits(net(x)[:, 0], mask)").replace(
            "(each * mask).sum() / mask.sum()", "((1 + mask) * (1 - torch.exp(-each)) ** 2 * each).mean()"),
        "multiplies a number that is computed from it by"),
    "the least of distances": (LEAST, "takes the least of products with"),
    "the least, with a number for the mask": (
        LEAST.replace("(~same).float()", "(1 - same.float())"), "takes the least of products with"),
    "the least of roots": (
        LEAST.replace("torch.cdist(net(x), net(x))", "(2 - 2 * net(x) @ net(x).T).clamp(min=1e-6).sqrt()"),
        "takes the least of products with"),
    "the least by amin": (LEAST.replace("min(dim=1).values", "amin(1)"), "takes the least of products with"),
    "the least of filled values": (
        LEAST.replace("(distances * (~same).float()).min(dim=1).values", (
            "distances.masked_fill(same, 0.0).amin(1)")), SETS),
    "the least of filled padding": (
        LEAST.replace("(distances * (~same).float()).min", "distances.masked_fill(padding, 0.0).min").replace(
            "    same =", "    padding = torch.rand(8, 8) < 0.2\n    same ="), SETS),
    "the least of chosen values": (
        LEAST.replace("(distances * (~same).float())", "torch.where(same, torch.zeros_like(distances), distances)"),
        SETS),
    "the least few": (
        LEAST.replace("(distances * (~same).float()).min(dim=1).values", (
            "distances.masked_fill(same, 0).topk(3, largest=False).values.mean(1)")), SETS),
    "the least outside of the diagonal": (
        LEAST.replace("(~same).float()", "(1 - torch.eye(8))"), "takes the least of products with"),
}  # fmt: skip
RIGHT = {
    "rows that do not count": LEAST.replace("(~same).float()", "(y > 1).float()[:, None]"),
    "other factors that may be negative": LEAST.replace(
        "torch.cdist(net(x), net(x))", "torch.cdist(net(x), net(x)) + -2"),
    "signs": LEAST.replace("(~same).float()", "(0.5 - same.float())"),
    "one for each element": LATE.replace("(net(x), y)", "(net(x), y, reduction='none')"),
    "a weight for a loss": LATE.replace("(each * mask).sum() / mask.sum()", "each * mask[0]"),
    "a focal loss for each element": LATE.replace(
        "(net(x), y)", "(net(x), y, reduction='none')").replace(
        "(each * mask).sum() / mask.sum()", "((1 + mask) * (1 - torch.exp(-each)) ** 2 * each).mean()"),
    "a loss for each task": LATE.replace("loss = (each * mask).sum() / mask.sum()", (
        "loss = (torch.stack([each, each.square()]) * mask[:2]).sum()")),
    "masked by a large number": LEAST.replace("* (~same).float()", "+ 1e3 * same.float()"),
    "filled": LEAST.replace("distances * (~same).float()", "distances.masked_fill(same, 1e3)"),
    "rows that are filled": LEAST.replace(
        "distances * (~same).float()", "distances.masked_fill((y > 1)[:, None].expand(8, 8), 0)"),
    "rows that a line sets": LEAST.replace(
        "    negative", "    distances = distances + 0\n    distances[y > 1] = 0\n    negative").replace(
        "distances * (~same).float()", "distances"),
    "values below a threshold": LEAST.replace(
        "distances * (~same).float()", "distances.masked_fill(distances < 1e-4, 0)"),
    "the most of filled values": LEAST.replace(
        "(distances * (~same).float()).min", "distances.masked_fill(same, 0).max"),
    "answers that cost nothing": LEAST.replace("(distances * (~same).float()).min", (
        "distances.masked_fill(accepted, 0.0).min")).replace("    same =", (
        "    accepted = torch.rand(8, 8) < 0.2\n    same =")),
    "both ends of the products": LEAST.replace("    positive", (
        "    farthest = (distances * (~same).float()).max(dim=1).values\n    positive")).replace(
        "(distances * (~same).float())", "gaps").replace("    negative", (
        "    gaps = distances * (~same).float()\n    negative")).replace(
        "positive - negative", "positive - negative + farthest"),
    "similarities": LEAST.replace("torch.cdist(net(x), net(x))", "net(x) @ net(x).T"),
}  # fmt: skip
WORDS = ("not the loss of each element", "takes the least of products with", SETS)


@pytest.mark.parametrize("name", WRONG)
def test_a_mask_without_effect_is_named(tmp_path: Path, name: str) -> None:
    source, text = WRONG[name]
    (found,) = (each for each in sentences(tmp_path, source) if any(word in each.text for word in WORDS))
    assert text in found.text
    assert found.labels[0].span.line == marked(source)


@pytest.mark.parametrize("name", RIGHT)
def test_a_mask_that_hides_is_left_alone(tmp_path: Path, name: str) -> None:
    found = sentences(tmp_path, RIGHT[name])
    assert [each.text for each in found if any(word in each.text for word in WORDS)] == []
