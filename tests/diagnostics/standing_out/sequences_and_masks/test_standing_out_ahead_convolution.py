"""Checks the sentence about a convolution that sees the step that it is to predict."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

SERIES = """\
one, two = nn.Conv1d(1, 4, 3, padding=2, dilation=2), nn.Conv1d(4, 1, 1)
opt = torch.optim.Adam([*one.parameters(), *two.parameters()], lr=0.01)
data, other = torch.randn(32, 10), torch.randn(32, 9)
for _ in range(3):
    x = data[torch.randperm(32)[:8]]
    h = one(x[:, :-1].unsqueeze(1)).relu()  #!
    loss = (two(h).squeeze(1) - x[:, 1:]).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WRONG = {
    "a series": SERIES,
    "ids": SERIES.replace("torch.randn(32, 10)", "torch.randint(0, 5, (32, 10))")
    .replace("Conv1d(1, 4", "Conv1d(5, 4")
    .replace("Conv1d(4, 1, 1)", "Conv1d(4, 5, 1)")
    .replace("x[:, :-1].unsqueeze(1)", ("nn.functional.one_hot(x[:, :-1], 5).float().mT"))
    .replace("(two(h).squeeze(1) - x[:, 1:]).square().mean()", "nn.functional.cross_entropy(two(h), x[:, 1:])"),
}
RIGHT = {
    "padding at the beginning": SERIES.replace("padding=2, ", "").replace(
        "one(x[:, :-1].unsqueeze(1))", "one(nn.functional.pad(x[:, None, :-1], (4, 0)))"
    ),
    "a cut": SERIES.replace("padding=2", "padding=4").replace(".relu()", "[..., :9].relu()"),
    "the same steps": SERIES.replace("x[:, 1:]", "x[:, :-1]"),
    "other data": SERIES.replace("one(x[:, :-1].unsqueeze(1))", "one(other[:8].unsqueeze(1))").replace(
        "two(h).squeeze(1)", "two(h).squeeze(1) + x[:, :-1]"
    ),
    "a summary": SERIES.replace("two(h).squeeze(1)", "two(h).squeeze(1).mean(1, keepdim=True) + x[:, :-1]"),
}
MASK = "mask = torch.ones(4, 1, 3)\nmask[:, :, 2:] = 0\n"
RIGHT |= {
    "a masked weight": MASK + SERIES.replace("    h = one", "    one.weight.data *= mask\n    h = one"),
    "a weight that stays 0": SERIES.replace("data, other", (
        "one.weight.data[:, :, 2:] = 0\n"
        "one.weight.register_hook(lambda g: g * g.new_tensor([1.0, 1.0, 0.0]))\ndata, other")),
    "features": """\
        one, two = nn.Conv1d(9, 9, 3, padding=1), nn.Linear(4, 4)
        inner = nn.GRU(4, 4, batch_first=True)
        opt = torch.optim.Adam([*one.parameters(), *two.parameters(), *inner.parameters()], lr=0.01)
        data = torch.randn(32, 10, 4)
        for _ in range(3):
            x = data[torch.randperm(32)[:8]]
            h = one(inner(x[:, :-1])[0]).relu()
            loss = (two(h) - x[:, 1:]).square().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
}  # fmt: skip
WRONG["weight norm"] = SERIES.replace("one, two = nn.Conv1d(1, 4, 3, padding=2, dilation=2)", (
    "one, two = nn.utils.parametrizations.weight_norm(nn.Conv1d(1, 4, 3, padding=1))"))  # fmt: skip
LOADED = """\
class Windows(torch.utils.data.Dataset):
    def __init__(self, data):
        self.data = data
    def __len__(self):
        return 40
    def __getitem__(self, i):
        return self.data[i:i + 9], self.data[i + 1:i + 10]
one, two = nn.Conv1d(1, 4, 3, padding=1), nn.Conv1d(4, 1, 1)
opt = torch.optim.Adam([*one.parameters(), *two.parameters()], lr=0.01)
for x, y in torch.utils.data.DataLoader(Windows(torch.randn(60)), batch_size=8, shuffle=True):
    h = one(x.unsqueeze(1)).relu()  #!
    loss = nn.functional.mse_loss(two(h).squeeze(1), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WRONG |= {
    "windows of a loader": LOADED,
    "rows of a loader": LOADED.replace("return self.data[i:i + 9], self.data[i + 1:i + 10]", (
        "row = self.data[i]\n        return row[:-1], row[1:]")).replace("randn(60)", "randn(40, 10)"),
    "parts of a set": LOADED.replace("Windows(torch.randn(60))", "PARTS").replace("for x, y", (
        "a = torch.randn(40, 10)\nPARTS = torch.utils.data.TensorDataset(a[:, :-1], a[:, 1:])\nfor x, y")),
}  # fmt: skip
RIGHT |= {
    "windows, padding at the beginning": LOADED.replace(", padding=1", "").replace(
        "one(x.unsqueeze(1))", "one(nn.functional.pad(x.unsqueeze(1), (2, 0)))"
    ),
    "the same windows": LOADED.replace("self.data[i + 1:i + 10]", "self.data[i:i + 9].abs()"),
    "windows of other data": LOADED.replace("return self.data[i:i + 9],", "return self.data[i:i + 9].flip(0),"),
}
CHANNELS = SERIES.replace("randn(32, 10), ", "randn(32, 4, 10), ").replace("Conv1d(1, 4", "Conv1d(3, 4")
CHANNELS = CHANNELS.replace(
    "x = data[torch.randperm(32)[:8]]", ("rows = data[torch.randperm(32)[:8]]\n    given, x = rows[:, :3], rows[:, 3]")
)
WRONG["channels, the predicted one among them"] = (
    CHANNELS.replace("given, x = rows[:, :3], rows[:, 3]", ("given, x = rows[:, 1:], rows[:, 3]"))
    .replace("x[:, :-1].unsqueeze(1)", "given[:, :, :-1]")
    .replace("two(h).squeeze(1)", "two(h).squeeze(1) + x[:, :-1]")
)
RIGHT["other channels of the step itself"] = CHANNELS.replace("x[:, :-1].unsqueeze(1)", "given[:, :, 1:]").replace(
    "two(h).squeeze(1)", "two(h).squeeze(1) + x[:, :-1]"
)
RIGHT["other channels, split"] = (
    RIGHT["other channels of the step itself"]
    .replace("rows[:, :3], rows[:, 3]", "rows.tensor_split([3], 1)")
    .replace("+ x[:, :-1]", "+ x[:, 0, :-1]")
    .replace("- x[:, 1:]", "- x[:, 0, 1:]")
)

WORDS = "has padding at both ends"


@pytest.mark.parametrize("name", WRONG)
def test_a_convolution_that_sees_the_next_step_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_convolutions_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
