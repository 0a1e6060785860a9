"""Checks the sentence about rows that are taken in an order twice, where its inverse puts them back."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

PACKED = """\
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.head = nn.GRU(3, 8, batch_first=True), nn.Linear(8, 2)
    def forward(self, x, lengths):
        lengths, order = lengths.sort(descending=True)
        packed = pack_padded_sequence(x[order], lengths, batch_first=True)
        _, h = self.rnn(packed)
        BACK
        return self.head(h)
net, x, y = Net(), torch.randn(60, 7, 3), torch.randint(2, (60,))
lengths = torch.randint(1, 8, (60,))
opt = torch.optim.Adam(net.parameters())
for pick in torch.randperm(60).split(15):
    loss = nn.functional.cross_entropy(net(x[pick], lengths[pick]), y[pick])
    opt.zero_grad(); loss.backward(); opt.step()
"""
TOKENS = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inside, self.out = nn.Linear(5, 8), nn.Linear(8, 5)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.mask, self.pos = nn.Parameter(torch.zeros(1, 1, 8)), nn.Parameter(torch.zeros(1, 9, 8))
    def forward(self, x):
        z = self.inside(x) + self.pos
        order = torch.rand(x.shape[:2]).argsort(dim=1)
        kept = order[:, :4]
        seen = self.layer(torch.gather(z, 1, kept.unsqueeze(-1).expand(-1, -1, 8)))
        full = torch.cat([seen, self.mask.expand(len(x), 5, -1)], dim=1)
        BACK
        return self.out(full), torch.ones(x.shape[:2]).scatter(1, kept, 0.0)
net = Net()
opt = torch.optim.Adam(net.parameters())
for _ in range(4):
    x = torch.randn(6, 9, 5)
    made, hidden = net(x)
    loss = ((made - x).square().mean(-1) * hidden).sum() / hidden.sum()
    opt.zero_grad(); loss.backward(); opt.step()
"""
EXPERTS = """\
experts = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
gate, head = nn.Linear(4, 3), nn.Linear(4, 1)
opt = torch.optim.Adam([*experts.parameters(), *gate.parameters(), *head.parameters()])
def mixed(x):
    weight, chosen = gate(x).softmax(1).max(1)
    order = chosen.argsort()
    counts = chosen.bincount(minlength=3).tolist()
    parts = x.index_select(0, order).split(counts)
    out = torch.cat([expert(part) for expert, part in zip(experts, parts)])
    BACK
    return x + weight[:, None] * out
for _ in range(4):
    x = torch.randn(20, 4)
    loss = (head(mixed(x))[:, 0] - x.sum(1)).square().mean()
    opt.zero_grad(); loss.backward(); opt.step()
"""
SHUFFLED = """\
key, query = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6)), nn.Linear(4, 6)
opt = torch.optim.Adam([*key.parameters(), *query.parameters()])
for _ in range(4):
    x = torch.randn(16, 4)
    shuffle = torch.randperm(16)
    k = key(x[shuffle])
    BACK
    loss = (query(x) - k).square().mean()
    opt.zero_grad(); loss.backward(); opt.step()
"""
WRONG = {
    "states of packed sequences": PACKED.replace("BACK", "h = h[-1][order]  #!"),
    "states, by index_select": PACKED.replace("BACK", "h = h.squeeze(0).index_select(0, order)  #!"),
    "states, along their second dimension": PACKED.replace("BACK", "h = h[:, order][0]  #!"),
    "padded outputs": PACKED.replace("_, h =", "out, _ =").replace("BACK", (
        "out, _ = pad_packed_sequence(out, batch_first=True)\n        h = out[order].mean(1)  #!")),
    "tokens": TOKENS.replace("BACK", "full = full.gather(1, order[..., None].repeat(1, 1, 8)) + self.pos  #!"),
    "tokens, by take_along_dim": TOKENS.replace("BACK", (
        "full = torch.take_along_dim(full, order[:, :, None], dim=1)  #!")),
    "tokens, by an index": TOKENS.replace("BACK", "full = full[torch.arange(len(x))[:, None], order]  #!"),
    "tokens beside a class token": TOKENS.replace("seen = self.layer(", "seen = self.layer(torch.cat([cls, ").replace(
        "expand(-1, -1, 8)))", "expand(-1, -1, 8))], 1))").replace("kept =", (
        "cls = self.mask.repeat(len(x), 1, 1); kept =")).replace("[seen,", "[seen[:, 1:],").replace("BACK", (
        "full = torch.gather(full, 1, order.unsqueeze(-1).expand(-1, -1, 8))  #!\n"
        "        full = self.layer(torch.cat([seen[:, :1], full], dim=1) + 0)[:, 1:]")),
    "experts": EXPERTS.replace("BACK", "out = out[order]  #!"),
    "values of the sort itself": SHUFFLED.replace("torch.randperm(16)", "x[:, 0].argsort()").replace(
        "k = key(x[shuffle])", "values, order = query(x)[:, 0].sort(); k = values.exp().cumsum(0).log()").replace(
        "BACK", "k = k[order]  #!").replace("(query(x) - k)", "(x[:, 0] - k)"),
    "a shuffled batch": SHUFFLED.replace("BACK", "k = k[shuffle]  #!"),
}  # fmt: skip
INVERSE = "inverse = torch.empty_like(order); inverse[order] = torch.arange(len(order)); "
RIGHT = {
    "tokens beside a class token, put back": WRONG["tokens beside a class token"].replace(
        "order.unsqueeze", "order.argsort(1).unsqueeze"),
    "states, by an inverse of NumPy": PACKED.replace("BACK", (
        "h = h[-1][order]; back = order.numpy().argsort()\n        back = torch.from_numpy(back[back]); h = h[back]")),
    "states, by the inverse": PACKED.replace("BACK", "h = h[-1][order.argsort()]"),
    "states, by a scattered inverse": PACKED.replace("BACK", INVERSE + "h = h[-1][inverse]"),
    "states, written to their places": PACKED.replace("BACK", "h = torch.zeros_like(h[0]).index_copy(0, order, h[0])"),
    "tokens, by the inverse": TOKENS.replace("BACK", (
        "full = full.gather(1, order.argsort(1)[..., None].expand(-1, -1, 8)) + self.pos")),
    "tokens, by scatter": TOKENS.replace("BACK", (
        "full = torch.zeros_like(full).scatter(1, order[..., None].expand(-1, -1, 8), full)")),
    "targets in the order, too": TOKENS.replace("BACK", "kept = order[:, :0]; full = full + self.pos").replace(
        "return", "self.order = order\n        return").replace(
        "made - x", "made - x.gather(1, net.order[..., None].expand(-1, -1, 5))"),
    "experts, written to their places": EXPERTS.replace("BACK", "out = torch.zeros_like(x).index_add(0, order, out)"),
    "an order that is its own inverse": SHUFFLED.replace("torch.randperm(16)", "(-torch.arange(16)).argsort()").replace(
        "BACK", "k = k[shuffle]"),
    "rows and partners that are mixed in one order": SHUFFLED.replace("x[shuffle]", "x + x[shuffle]").replace(
        "BACK", "k = 0.7 * k + 0.3 * k[shuffle]"),
    "twice, and the inverse twice": SHUFFLED.replace("BACK", (
        "k = k[shuffle].tanh(); back = shuffle.argsort(); k = k[back].exp()[back]")),
    "fixed orders of features": """\
order, layers = torch.randperm(8), nn.ModuleList(nn.Linear(8, 8) for _ in range(3))
opt = torch.optim.Adam(layers.parameters())
for _ in range(4):
    x = h = torch.randn(6, 8)
    for layer in layers:
        h = h + layer(h[:, order]).tanh()[:, order]
    loss = (h - x.flip(1)).square().mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "successors of a random walk": """\
layer = nn.Linear(6, 6)
opt = torch.optim.Adam(layer.parameters())
for _ in range(4):
    x, y = torch.randn(16, 6), torch.randint(0, 6, (16,))
    successor = torch.randn(16).argsort()
    m = torch.relu(layer(x[successor]))
    loss = nn.functional.cross_entropy(x + m[successor], y)
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "targets that are taken twice, too": SHUFFLED.replace("BACK", "k = k[shuffle]").replace(
        "query(x) - k", "query(x) - k + x[shuffle][shuffle].sum()"),
    "negatives of negatives": SHUFFLED.replace("BACK", "far = k[shuffle]").replace(
        "(query(x) - k).square()", "((query(x) - k).abs() - (query(x) - far).abs())"),
}  # fmt: skip
WORDS = "taken twice, the order has another row"


@pytest.mark.parametrize("name", WRONG)
def test_rows_that_are_not_put_back_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert "is in the order before" in found.text
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_rows_that_are_put_back_or_meant_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
