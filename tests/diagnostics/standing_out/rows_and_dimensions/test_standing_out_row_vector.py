"""Checks the sentence about vectors for rows that broadcast along columns."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

NOISE = """\
bar = torch.linspace(0.9, 0.1, 10)
net = nn.Linear(9, 8)
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for _ in range(4):
    x, t = torch.randn(8, 8), torch.randint(0, 10, (8,))
    noise = torch.randn(8, 8)
    keep = bar[t]
    noisy = keep.sqrt() * x + (1 - keep).sqrt() * noise  #!
    loss = (net(torch.cat([noisy, t.float().unsqueeze(1)], 1)) - noise).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
LOOKED_UP = NOISE.replace("t.float().unsqueeze(1)], 1))", "emb(t)], 1))").replace(
    "net =", "emb = nn.Embedding(10, 1)\nnet ="
)
WRONG = {
    "a column of the same": NOISE,
    "an embedding": LOOKED_UP,
    "curves over a grid": NOISE.replace("x, t = torch.randn(8, 8)", (
        "x, t = (torch.linspace(0, 1, 8)[None] - torch.rand(8, 1)).exp()")),
    "an index": NOISE.replace("t.float().unsqueeze(1)", "t.float()[:, None]"),
}  # fmt: skip
RIGHT = {
    "a column": NOISE.replace("bar[t]", "bar[t].unsqueeze(1)"),
    "other sizes": NOISE.replace("torch.randn(8, 8), torch.randint(0, 10, (8,))", (
        "torch.randn(16, 8), torch.randint(0, 10, (16,))")).replace("noise = torch.randn(8, 8)", (
        "noise = torch.randn(16, 8)")).replace("keep = bar[t]", "keep = bar[t].unsqueeze(1)"),
    "a mean of columns": NOISE.replace("keep = bar[t]", "keep = x.mean(0).sigmoid()"),
    "scores of pairs": NOISE.replace("torch.randn(8, 8), torch.randint", "torch.randn(8, 5), torch.randint").replace(
        "keep.sqrt() * x + (1 - keep).sqrt() * noise", "keep.sqrt() * (x @ x.T) + noise"),
    "no look-up": NOISE.replace("keep = bar[t]", "keep = t / 10.0"),
    "made once": NOISE.replace("x, t = torch.randn(8, 8), torch.randint(0, 10, (8,))", "x = torch.randn(8, 8)").replace(
        "net =", "t = torch.randint(0, 10, (8,))\nnet ="),
    "trained": NOISE.replace("bar = torch.linspace(0.9, 0.1, 10)", "bar = nn.Parameter(torch.linspace(0.9, 0.1, 10))"),
    "columns that are drawn": """\
data, spread, emb = torch.randn(90, 40), torch.rand(40) + 1, nn.Embedding(40, 5)
head = nn.Linear(5, 1)
for _ in range(4):
    columns, rows = torch.randint(0, 40, (8,)), torch.randperm(90)[:8]
    x = data[rows][:, columns] / spread[columns]
    head((x[:, :, None] * emb(columns)).mean(1)).square().mean().backward()
""",
    "not for rows": NOISE.replace("t.float().unsqueeze(1)", "noise[:, :1]"),
}  # fmt: skip
MIXED = """\
data, labels = torch.randn(40, 8), torch.randint(0, 3, (40,))
net = nn.Linear(8, 3)
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for pick in torch.randperm(40).split(8):
    x, y, other = data[pick], labels[pick], torch.randperm(8)
    share = torch.distributions.Beta(0.4, 0.4).sample((8,))
    out = net(torch.lerp(x[other], x, share))  #!
    first, second = (nn.functional.cross_entropy(out, each, reduction="none") for each in (y, y[other]))
    loss = (share * first + (1 - share) * second).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
ADDED = MIXED.replace("torch.lerp(x[other], x, share)", "x * share + x[other] * (1 - share)")
ONE_HOT = MIXED.replace("torch.randint(0, 3, (40,))", "torch.eye(3)[torch.randint(0, 3, (40,))]").replace(
    "share * first + (1 - share) * second", "nn.functional.cross_entropy(out, y.lerp(y[other], share.view(-1, 1)))"
)
SWAPPED = (
    MIXED.replace("torch.distributions.Beta(0.4, 0.4).sample((8,))", "torch.rand(len(x)) < 0.5")
    .replace("torch.lerp(x[other], x, share)", "torch.where(share, x, x[other])")
    .replace("share * first + (1 - share) * second", "torch.where(share, first, second)")
)
LOADED = MIXED.replace(
    "for pick in torch.randperm(40).split(8):\n    x, y, other = data[pick], labels[pick],",
    (
        "rows = torch.utils.data.TensorDataset(data, labels)\n"
        "for x, y in torch.utils.data.DataLoader(rows, 8, shuffle=True):\n    other ="
    ),
)
OF_ROWS = {"lerp": MIXED, "a sum": ADDED, "one-hot labels": ONE_HOT, "a mask": SWAPPED, "a loader": LOADED}
OF_COLUMNS = {
    "a column": MIXED.replace("x, share)", "x, share[:, None])"),
    "one share": MIXED.replace("sample((8,))", "sample()"),
    "shares of features and of rows": MIXED.replace("x, share)", "x, torch.rand(8))"),
    "features that are left out": """\
data, labels, net = torch.randn(40, 8), torch.randn(40), nn.Linear(8, 1)
for _ in range(4):
    rows = torch.randint(0, 40, (8,))
    x, y = data[rows], labels[rows]
    keep = torch.bernoulli(torch.full((8,), 0.8))
    (net(x * keep).squeeze(1) - y).square().mean().backward()
""",
    "a sub-graph with nodes left out": """\
edges, data, labels = (torch.rand(40, 40) < 0.2).float(), torch.randn(40, 5), torch.randint(0, 3, (40,))
net = nn.Linear(5, 3)
for pick in torch.randperm(40).split(8):
    keep = torch.rand(8)
    near = edges[pick][:, pick] * keep
    each = nn.functional.cross_entropy(net(near @ data[pick]), labels[pick], reduction="none")
    (each * keep).mean().backward()
""",
}
WEIGHTED = """\
data, goals, trust = torch.randn(40, 6), torch.rand(40, 8), torch.rand(40)
net = nn.Linear(6, 8)
opt = torch.optim.Adam(net.parameters(), lr=0.01)
rows = torch.utils.data.TensorDataset(data, goals, trust)
for x, y, share in torch.utils.data.DataLoader(rows, 8, shuffle=True):
    share = share / share.mean()
    each = nn.functional.binary_cross_entropy_with_logits(net(x), y, reduction="none")
    loss = (each * share).mean()  #!
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
PICKED = WEIGHTED.replace("x, y, share in torch.utils.data.DataLoader(rows, 8, shuffle=True):\n", (
    "at in range(0, 40, 8):\n    x, y, share = data[at:at + 8], goals[at:at + 8], trust[at:at + 8]\n"))  # fmt: skip
OF_SAMPLES = {
    "a loader": WEIGHTED,
    "slices": PICKED,
    "an index": PICKED.replace("at in", "_ in").replace("    x, y", "    at = torch.randint(40, (8,))\n    x, y")
    .replace("at:at + 8", "at"),
    "a weight of the loss": WEIGHTED.replace('reduction="none")', "weight=share)  #!")
    .replace("(each * share).mean()  #!", "each"),
    "a product of matrices": WEIGHTED.replace("each * share", "each @ share"),
}  # fmt: skip
OF_LABELS = {
    "a column of weights": WEIGHTED.replace("share.mean()", "share.mean()\n    share = share[:, None]"),
    "frequencies of labels": WEIGHTED.replace("share / share.mean()", "y.mean(0)"),
    "sums of square errors": WEIGHTED.replace("(each * share)", "(each * each.detach().sum(0))"),
    "pairs of samples": WEIGHTED.replace("each = nn", "y = (y @ y.T).sigmoid()\n    each = nn"),
    "edges between some nodes": """\
edges, data, keep = (torch.rand(40, 40) < 0.2).float(), torch.randn(40, 5), torch.rand(40)
net = nn.Linear(5, 3)
for pick in torch.randperm(40).split(8):
    near = edges[:, pick][pick] * keep[pick]
    net(near @ data[pick]).square().mean().backward()
""",
    "all nodes of a graph": WEIGHTED.replace("(40, 6), torch.rand(40, 8), torch.rand(40)", (
        "(8, 6), torch.rand(8, 8), torch.rand(8)")).replace("for x", "for _ in range(4):\n  for x").replace(
        "\n    ", "\n      "),
}  # fmt: skip
TOWERS = """\
users, items, log_q = torch.randint(50, (64,)), torch.randint(30, (64,)), torch.rand(30).log()
U, V, mix = nn.Embedding(50, 8), nn.Embedding(30, 8), nn.Linear(16, 1)
for _ in range(4):
    i = torch.randint(64, (16,))
    item = items[i]
    u, v, correction = U(users[i]), V(item), log_q[item]
    logits = nn.functional.linear(u, v) - correction
    each = nn.functional.cross_entropy(logits, torch.arange(16), reduction="none")
    (each * (-0.5 * correction).exp()).mean().backward()
"""
OF_PAIRS = {
    "users and items": TOWERS,
    "an index of another time": TOWERS.replace("log_q[item]", "log_q[items[i]]"),
    "distances": TOWERS.replace("nn.functional.linear(u, v)", "-(u[:, None] - v).pow(2).sum(-1).add(1).sqrt()"),
    "cosines": TOWERS.replace("nn.functional.linear(u, v)", "torch.cosine_similarity(u[:, None], v[None], dim=-1)"),
    "a network": TOWERS.replace("nn.functional.linear(u, v)", (
        "mix(torch.cat([u[:, None].expand(-1, 16, -1), v.expand(16, -1, -1)], -1).tanh()).squeeze(-1)")),
    "all pairs in a row": TOWERS.replace("nn.functional.linear(u, v)", (
        "mix(torch.cat([u.repeat_interleave(16, 0), v.repeat(16, 1)], -1)).view(16, 16)")),
}  # fmt: skip
WORDS = "although they are one for each row"


@pytest.mark.parametrize("name", WRONG)
def test_a_vector_for_rows_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert "combines the 8 elements of `keep.sqrt()` with the 8 columns of `x`, of shape (8, 8)" in found.text
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_vectors_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []


@pytest.mark.parametrize("name", OF_ROWS)
def test_random_numbers_for_rows_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, OF_ROWS[name]) if WORDS in each.text)
    assert "combines the 8 elements of `share` with the 8 columns of `x" in found.text
    assert found.labels[0].span.line == marked(OF_ROWS[name])


@pytest.mark.parametrize("name", OF_COLUMNS)
def test_random_numbers_for_columns_are_left_alone(tmp_path: Path, name: str) -> None:
    body = OF_COLUMNS[name].replace("  #!", "")
    assert [each.text for each in sentences(tmp_path, body) if WORDS in each.text] == []


@pytest.mark.parametrize("name", OF_SAMPLES)
def test_a_number_for_each_sample_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, OF_SAMPLES[name]) if WORDS in each.text)
    assert "they were taken from the data with the rows" in found.text
    assert found.labels[0].span.line == marked(OF_SAMPLES[name])


@pytest.mark.parametrize("name", OF_LABELS)
def test_a_number_for_each_label_is_left_alone(tmp_path: Path, name: str) -> None:
    body = OF_LABELS[name].replace("  #!", "")
    assert [each.text for each in sentences(tmp_path, body) if WORDS in each.text] == []


@pytest.mark.parametrize("name", OF_PAIRS)
def test_a_number_for_the_columns_of_pairs_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, OF_PAIRS[name]) if WORDS in each.text] == []
