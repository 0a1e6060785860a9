"""Checks the sentence about a target of scores in which a line writes a measure of another result, with a graph."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

BODY = """\
from torch.nn import functional as F

def overlap(a, b):
    inner = (torch.minimum(a[:, 1], b[:, 1]) - torch.maximum(a[:, 0], b[:, 0])).clamp(min=0)
    outer = torch.maximum(a, b)[:, 1] - torch.minimum(a, b)[:, 0]
    return inner / outer

body, smooth = nn.Linear(6, 8), nn.Parameter(torch.tensor(2.0))
ends, scores = nn.Linear(8, 2), nn.Linear(8, 1)
opt = torch.optim.SGD([*body.parameters(), *ends.parameters(), *scores.parameters(), smooth], lr=0.01)
for _ in range(3):
    x, positive = torch.randn(16, 6), torch.arange(16) % 2 == 0
    truth = torch.stack([x[:, 0] - 1, x[:, 0] + 1], 1)
    h = body(x).relu()
    score, box = scores(h)[:, 0], ends(h) + torch.tensor([-1.0, 1.0])
    iou = overlap(box, truth)
    target = torch.zeros_like(score)
    target[positive] = iou[positive]  #!
    loss = F.binary_cross_entropy_with_logits(score, target) + (1 - iou[positive]).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
LINE = "target[positive] = iou[positive]"
CLASSES = BODY.replace("nn.Linear(8, 1)", "nn.Linear(8, 3)").replace("scores(h)[:, 0]", "scores(h)").replace(
    LINE, "target[positive, 1] = iou[positive]")  # fmt: skip
WRONG = {
    "the overlap": BODY,
    "clamped": BODY.replace(LINE, "target[positive] = iou[positive].clamp(0, 1)"),
    "of each class": CLASSES,
    "where() with zeros": BODY.replace(LINE, "target = torch.where(positive, iou, torch.zeros_like(iou))"),
    "probabilities": BODY.replace("cross_entropy_with_logits(score", "cross_entropy(score.sigmoid()"),
    "a size of an error": BODY.replace(LINE, "target[positive] = (-(box - truth).abs().sum(1))[positive].exp()"),
    "weighted by hand": BODY.replace("(score, target) +", "(score, target, reduction='none').mul(2).sum() / 8 +"),
}
RIGHT = {
    "detached": BODY.replace(LINE, "target[positive] = iou[positive].detach()"),
    "detached afterwards": BODY.replace("(score, target)", "(score, target.detach())"),
    "a branch that is to meet the overlap": BODY.replace("(score, target)", "(score[positive], iou[positive])"),
    "a smoothing that is trained": BODY.replace(LINE, "target[positive] = smooth.sigmoid()"),
    "the scores of the other branch": BODY.replace(LINE, "target[positive] = box[positive, 0].sigmoid()"),
    "both ways": BODY.replace("(score, target) +", (
        "(score, target) + F.binary_cross_entropy(iou.clamp(0.01, 0.99), score.sigmoid()) +")),
    "nothing else that trains the boxes": BODY.replace("+ (1 - iou[positive]).mean()", ""),
    "a result of the same parameters": BODY.replace("score, box = scores(h)[:, 0]", "score, box = ends(h)[:, 0]"),
    "an entropy": BODY.replace(LINE, "target[positive] = score[positive].sigmoid()"),
    "a residual before a layer": BODY.replace(LINE, (
        "target[positive] = torch.sigmoid(ends(body(x - F.pad(box, (0, 4))))[positive, 0])")),
    "boxes that are not trained": BODY.replace("*ends.parameters(), ", "").replace(
        "h = body(x).relu()", "h = body(x).relu().detach()"),
}  # fmt: skip
WORDS = "has a graph: the loss also trains"


@pytest.mark.parametrize("name", WRONG)
def test_a_measure_with_a_graph_in_a_target_of_zeros_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert "`ends.weight` and `ends.bias`, which its input is not computed from" in found.text
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_targets_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
