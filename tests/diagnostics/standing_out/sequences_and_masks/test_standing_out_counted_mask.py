"""Checks the sentence about masked scores that a softmax gives a weight."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

HEAD = """\
import torch.nn.functional as F
FILL = 1e-9
embed, q, k = nn.Embedding(9, 8, padding_idx=0), nn.Linear(8, 8), nn.Linear(8, 8)
out = nn.Linear(8, 9)
opt = torch.optim.Adam([p for m in (embed, q, k, out) for p in m.parameters()], lr=0.01)
ids = torch.randint(1, 9, (4, 6))
ids[0, 4:] = 0
for _ in range(3):
    x = embed(ids)
    scores = q(x) @ k(x).transpose(-2, -1) / 8 ** 0.5
    pad = (ids == 0)[:, None, :]
    late = torch.triu(torch.ones(6, 6), 1).bool()
"""
END = """\
    loss = F.cross_entropy(out(weights @ x).flatten(0, 1), ids.flatten())
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
FILLED = "    scores = scores.masked_fill(late, 1e-9)  #!\n"
SOFTMAX = "    weights = scores.softmax(dim=-1)\n"
PLAIN = HEAD + FILLED + SOFTMAX + END
POOL = """\
class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.score, self.softmax = nn.Linear(4, 1), nn.Softmax(dim=1)
        self.empty = -1.0

    def forward(self, x, lengths):
        valid = torch.arange(x.shape[1]) < lengths[:, None]
        scores = self.score(x).squeeze(-1)
        scores[~valid] = self.empty  #!
        weights = self.softmax(scores)
        return (weights[:, :, None] * torch.tanh(self.score(x))).sum(1)

pool = Pool()
opt = torch.optim.SGD(pool.parameters(), lr=0.1)
for _ in range(3):
    loss = pool(torch.randn(5, 7, 4), torch.tensor([7, 3, 4, 5, 6])).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WRONG = {
    "a tiny number": PLAIN,
    "zero": PLAIN.replace("1e-9)", "0)"),
    "a small negative number": PLAIN.replace("(late, 1e-9)", "(late, value=-1.0)"),
    "a constant of the file": PLAIN.replace("(late, 1e-9)", "(pad, FILL)"),
    "in place": PLAIN.replace("scores = scores.masked_fill(late", "scores.masked_fill_(late"),
    "by where": PLAIN.replace("scores.masked_fill(late, 1e-9)", "torch.where(late, 0.0, scores)"),
    "by where with zeros": PLAIN.replace(
        "scores.masked_fill(late, 1e-9)", "torch.where(late, torch.zeros_like(scores), scores)"),
    "by a product with a triangle": PLAIN.replace(
        "scores.masked_fill(late, 1e-9)", "scores * torch.tril(torch.ones(6, 6))"),
    "by a product with a comparison": PLAIN.replace("scores.masked_fill(late, 1e-9)", "scores * (~pad).float()"),
    "by a product with ones that lines write": PLAIN.replace(FILLED, (
        "    mask = torch.zeros(4, 6)\n    for row, word in enumerate(ids):\n"
        "        mask[row, : int((word > 0).sum())] = 1.0\n    scores = scores * mask[:, None]  #!\n")),
    "by a product with a sum of masks": PLAIN.replace(FILLED, (
        "    upper = torch.triu((torch.rand(6, 6) < 0.3).float(), diagonal=1)\n"
        "    scores = torch.mul(scores, upper + upper.T + torch.eye(6))  #!\n")),
    "by a product in place, with a filled diagonal": PLAIN.replace(FILLED, (
        "    near = torch.zeros(6, 6)\n    near[ids[0], ids[1] % 6] = 1\n    near = torch.maximum(near, near.T)\n"
        "    near.fill_diagonal_(1)\n    scores.mul_(near)  #!\n")).replace("(1, 9, (4, 6))", "(1, 6, (4, 6))"),
    "by a product with blocks": PLAIN.replace(FILLED, (
        "    blocks = torch.block_diag(torch.ones(2, 2), torch.ones(4, 4))\n    scores = blocks * scores  #!\n")),
    "by a drawn mask of the data": PLAIN.replace(FILLED, (
        "    seen = torch.rand(4, 6, 6) > 0.2\n    x = x * seen.any(1)[..., None]\n"
        "    scores = scores * seen.float()  #!\n")),
    "dropout of weights": PLAIN.replace(SOFTMAX, "    weights = F.dropout(F.softmax(scores, -1), 0.1)\n"),
    "log_softmax": PLAIN.replace(SOFTMAX, "    weights = F.log_softmax(scores, dim=2)\n"),
    "items of a module": POOL,
}  # fmt: skip
AGAIN = "    scores = scores.masked_fill(late.all(-1, keepdim=True).expand(6, 6), 0.0)\n"
RIGHT = {
    "minus infinity": PLAIN.replace("1e-9)  #!", 'float("-inf"))'),
    "a large number": PLAIN.replace("1e-9)  #!", "-1e4)"),
    "a large number with a name": PLAIN.replace("1e-9)  #!", "FILL)").replace("FILL = 1e-9", "FILL = -1e9"),
    "the least number": PLAIN.replace("1e-9)  #!", "torch.finfo(scores.dtype).min)"),
    "where with a large number": PLAIN.replace(
        "scores.masked_fill(late, 1e-9)  #!", "torch.where(late, torch.full_like(scores, -1e9), scores)"),
    "minus math.inf": PLAIN.replace("1e-9)  #!", "-torch.inf)"),
    "masked after it": PLAIN.replace(SOFTMAX, SOFTMAX + "    weights = weights * (~late)\n"),
    "masked again and normalised": PLAIN.replace(SOFTMAX, SOFTMAX + "    weights = weights.masked_fill(late, 0)\n"
                                                 "    weights = weights / weights.sum(-1, keepdim=True)\n"),
    "filled after it": PLAIN.replace(FILLED, "").replace(
        SOFTMAX, SOFTMAX + "    weights = weights.masked_fill(late, 0)\n"),
    "no softmax": PLAIN.replace(SOFTMAX, "    weights = torch.tanh(scores)\n"),
    "rows that are masked as a whole": PLAIN.replace("1e-9)", 'float("-inf"))').replace(SOFTMAX, AGAIN + SOFTMAX),
    "rows of padding": PLAIN.replace("(late, 1e-9)  #!", "(pad.transpose(1, 2), 0.0)"),
    "values that are not finite": PLAIN.replace("(late, 1e-9)  #!", "(torch.isnan(scores), 0.0)"),
    "scores below a threshold": PLAIN.replace("(late, 1e-9)  #!", "(scores < 0.1, 0.0)"),
    "a sum with the mask": PLAIN.replace(FILLED, "    scores = scores * (~pad) + pad * -1e9\n"),
    "a temperature": PLAIN.replace(FILLED, "    scores = scores * torch.tensor(0.5)\n"),
    "weights of positions": PLAIN.replace(FILLED, "    scores = scores * torch.linspace(1, 2, 6)\n"),
    "weights that lines write": PLAIN.replace(FILLED, (
        "    mask = torch.zeros(6)\n    mask[2:] = 1.0\n    mask[4:] = 0.5\n    scores = scores * mask\n")),
    "the reference of a choice": PLAIN.replace(FILLED, (
        "    free = torch.ones(6)\n    free[0] = 0\n    scores = scores * free\n")),
    "picked afterwards": PLAIN.replace(SOFTMAX, (
        "    weights = scores.log_softmax(-1).index_select(-1, torch.tensor([0]))\n"
        "    weights = (weights - weights.logsumexp(-1, keepdim=True)).exp().expand(4, 6, 6)\n")),
    "ones": PLAIN.replace(FILLED, "    scores = scores * torch.ones(6)\n"),
    "a mask that raises scores": PLAIN.replace(FILLED, "    scores = scores * (late.float() + torch.ones(6, 6))\n"),
    "a mask and its opposite": PLAIN.replace(FILLED, (
        "    after = late.float()\n    scores = scores * (after + (1 - after))\n")),
    "weights of a triangle": PLAIN.replace(FILLED, "    scores = scores * torch.tril(torch.rand(6, 6))\n"),
    "a number that is computed": PLAIN.replace("1e-9)  #!", "FILL)")
    .replace("    x = embed", "    FILL = -1e9 * 2\n    x = embed"),
    "a dropout of scores": PLAIN.replace(FILLED, (
        "    scores = scores * (torch.rand(4, 6, 6) > 0.2).float()\n")),
    "the reference of each row": PLAIN.replace(FILLED, (
        "    is_base = F.one_hot(ids % 6, 6).bool()\n    scores = scores.masked_fill(is_base, 0.0)\n")),
    "one weight for counts": PLAIN.replace(FILLED, (
        "    count = (ids[:, :, None] == torch.arange(6)).sum(1)[:, None].expand(4, 6, 6)\n"
        "    scores = q.bias[:1] * count\n")),
    "a default that callers change": PLAIN.replace("1e-9)  #!", "FILL)")
    .replace("FILL = 1e-9", "FILL = 0\ndef fill_with(FILL=-1e9):\n    return FILL\n"),
    "an option that the caller gives": PLAIN.replace("1e-9)  #!", "cfg.fill)").replace(
        "FILL = 1e-9", "class Config:\n    fill = 0.0\n    def __init__(self, **more):\n        vars(self).update(more)"
        "\ncfg = Config(fill=-1e9)"),
}  # fmt: skip
RIGHT |= {
    f"an option outside of a choice, {n}": PLAIN.replace(
        FILLED, f"    score = k(x)[:, :, 0]\n    score = {masked}\n    chosen = {loss}\n"
    ).replace("    loss = ", "    loss = chosen + ")
    for n, (masked, loss) in enumerate((
        ("score.masked_fill(ids == 0, 0.0)", "F.nll_loss(score.log_softmax(1), ids[:, 0] % 6)"),
        ("score * (ids != 0)", "-score.log_softmax(1)[:, 0].mean()"),
        ("torch.where(ids == 0, 0.0, score)", "-score.softmax(1)[:, 0].log().mean()"),
    ))
}  # fmt: skip
WORDS = "still count"


@pytest.mark.parametrize("name", WRONG)
def test_a_mask_that_leaves_weights_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_a_mask_that_takes_weights_away_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []


def test_the_sentence_names_the_number_and_the_softmax(tmp_path: Path) -> None:
    (found,) = (each for each in sentences(tmp_path, PLAIN) if WORDS in each.text)
    assert "`scores.masked_fill(late, 1e-9)` sets to 1e-09 still count in `scores.softmax(dim=-1)`" in found.text
