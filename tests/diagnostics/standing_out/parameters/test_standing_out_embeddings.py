"""Checks the sentences about the rows of an embedding for padding, and about embeddings that are frozen by default."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

BODY = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = MAKE
        self.out = nn.Linear(4, 1)
        INIT
    def forward(self, ids):
        return self.out(self.table(ids).mean(1))
rows = torch.randn(10, 4)
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
ids = torch.randint(0, 10, (8, 5))
for _ in range(3):
    opt.zero_grad()
    net(ids).square().mean().backward()
    opt.step()
"""
PADDED = "nn.Embedding(10, 4, padding_idx=0)"


def body(make: str, init: str = "pass") -> str:
    return BODY.replace("MAKE", make).replace("INIT", init)


WRONG = {
    "all parameters": (body(PADDED, "[nn.init.normal_(p) for p in self.parameters()]  #!"), "row of zeros"),
    "an initializer of PyTorch": (body(PADDED, "nn.init.xavier_uniform_(self.table.weight)  #!"), "row of zeros"),
    "data": (body(PADDED, "self.table.weight.data.uniform_(-0.1, 0.1)  #!"), "row of zeros"),
    "frozen by default": (
        body("nn.Embedding.from_pretrained(rows)  #!"),
        "`net.table.weight` is given to `SGD` and never gets a gradient: `from_pretrained()` freezes it unless",
    ),
}
RIGHT = {
    "packed sequences": body(PADDED, "self.table.weight.data.uniform_(-0.1, 0.1)").replace(
        "self.out(self.table(ids).mean(1))",
        ("self.out(nn.utils.rnn.pack_padded_sequence(self.table(ids), [3] * 8, batch_first=True)[0])"),
    ),
    "a mean of those that are there": body(PADDED, "self.table.weight.data.uniform_(-0.1, 0.1)").replace(
        "self.out(self.table(ids).mean(1))", "self.out((self.table(ids) * (mask := ids > 0)[..., None]).sum(1))"
    ),
    "no padding": body("nn.Embedding(10, 4)", "nn.init.normal_(self.table.weight)"),
    "zeros again": body(
        PADDED,
        "nn.init.normal_(self.table.weight)\n        with torch.no_grad():\n            self.table.weight[0].fill_(0)",
    ),
    "values of a table": body(PADDED, "self.table.weight.data.copy_(rows)"),
    "not frozen": body("nn.Embedding.from_pretrained(rows, freeze=False)"),
    "frozen on purpose": body("nn.Embedding.from_pretrained(rows, freeze=True)"),
    "not given to the optimizer": body("nn.Embedding.from_pretrained(rows)").replace(
        "SGD(net.parameters()", "SGD(net.out.parameters()"
    ),
}
WORDS = ("row of zeros", "from_pretrained")


@pytest.mark.parametrize("name", WRONG)
def test_they_are_named(tmp_path: Path, name: str) -> None:
    text, words = WRONG[name]
    (found,) = (each for each in sentences(tmp_path, text) if any(word in each.text for word in WORDS))
    assert words in found.text
    assert found.labels[0].span.line == marked(text)


@pytest.mark.parametrize("name", RIGHT)
def test_usual_embeddings_are_left_alone(tmp_path: Path, name: str) -> None:
    found = sentences(tmp_path, RIGHT[name])
    assert [each.text for each in found if any(word in each.text for word in WORDS)] == []
