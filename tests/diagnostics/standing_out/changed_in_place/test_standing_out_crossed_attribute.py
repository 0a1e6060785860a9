"""Checks the sentence about attributes that have been overwritten for other data before they are used."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

NET = """\
class Norm(nn.Module):
    def forward(self, x):
        self.scale = x.std(1, keepdim=True).detach()
        return x / self.scale

    def inverse(self, z):
        return z * self.scale  #!

norm, net = Norm(), nn.Linear(4, 4)
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for _ in range(4):
    past, future = torch.randn(8, 4), torch.randn(8, 4)
    z = net(norm(past))
    with torch.no_grad():
        wanted = norm(future)
    loss = (z - wanted).square().mean() + (norm.inverse(z) - future).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WRONG = {
    "without a graph": NET,
    "with a graph": NET.replace("    with torch.no_grad():\n    ", ""),
}
RIGHT = {
    "in order": NET.replace("    z = net(norm(past))\n", "").replace(
        "    loss =", "    z = net(norm(past))\n    loss ="),
    "at once": NET.replace("    with torch.no_grad", "    out = norm.inverse(z)\n    with torch.no_grad").replace(
        "norm.inverse(z)", "out").replace("out = out", "out = norm.inverse(z)"),
    "once only": NET.replace("wanted = norm(future)", "wanted = norm(future) if _ == 1 else future"),
    "two objects": NET.replace("norm, net = Norm()", "norm, more, net = Norm(), Norm()").replace(
        "wanted = norm(future)", "wanted = more(future)").replace("norm.inverse", "more.inverse"),
    "a comparison": NET.replace("z * self.scale", "z - self.scale").replace("x / self.scale", "x + self.scale"),
    "an average": NET.replace("x.std(1, keepdim=True).detach()", (
        "0.9 * getattr(self, 'scale', torch.ones(8, 1)) + 0.1 * x.std(1, keepdim=True).detach()")),
}  # fmt: skip
TWO = """\
class Norm:
    def __call__(self, x):
        mean, scale = x.mean(1, keepdim=True), x.std(1, keepdim=True)
        self.stats = {"mean": mean, "scale": scale}
        return (x - mean) / scale

    def inverse(self, z):
        return torch.addcmul(self.stats["mean"], z, self.stats["scale"])  #!

norm, net = Norm(), nn.Linear(12, 4)
opt = torch.optim.Adam(net.parameters(), lr=0.01)
series, heat = torch.randn(32, 12).cumsum(1), torch.rand(32, 6)
past, future = series[:, :6], series[:, 6:10]
for _ in range(4):
    i = torch.randint(32, (8,))
    z = net(torch.cat([norm(past[i]), norm(heat[i])], 1))
    loss = (norm.inverse(z) - future[i]).abs().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
SETTING = """\
        mean, scale = x.mean(1, keepdim=True), x.std(1, keepdim=True)
        self.stats = {"mean": mean, "scale": scale}
"""
STATS, KEPT = 'self.stats["mean"], z, self.stats["scale"]', 'self.stats = {"mean": mean, "scale": scale}'
MOMENTS = TWO.replace(SETTING, "        self.stats = moments(x)\n        mean, scale = self.stats\n").replace(
    f"return torch.addcmul({STATS})", "mean, scale = self.stats\n        return z * scale + mean"
)  # fmt: skip
MOMENTS = "def moments(x):\n    return x.mean(1, keepdim=True), x.std(1, keepdim=True)\n\n" + MOMENTS
PARTS = "series[:, :6], series[:, 6:10]"
TWO_WRONG = {
    "a dict": TWO,
    "attributes": TWO.replace(KEPT, "self.mean, self.scale = mean, scale").replace(STATS, "self.mean, z, self.scale"),
    "a helper function": MOMENTS,
    "noise added": TWO.replace(PARTS, "series[:, :6] + 0.1, series[:, :4]"),
}
TWO_RIGHT = {
    "the first data last": TWO.replace("[norm(past[i]), norm(heat[i])]", "[norm(heat[i]), norm(past[i])]"),
    "a later part": TWO.replace("norm(heat[i])", "norm(past[i][:, 3:])").replace("Linear(12", "Linear(9"),
    "an average of it": TWO.replace("norm(heat[i])", "norm(0.5 * past[i] + 0.5 * past[i].roll(1, 1))"),
    "another target": TWO.replace(PARTS, "series[:, :6], heat[:, 2:]"),
    "items of their own": TWO.replace("def __call__(self, x):", "stats = {}\n    def __call__(self, x, key='a'):")
    .replace(KEPT, "self.stats[key] = mean, scale")
    .replace("norm(heat[i])", "norm(heat[i], 'b')")
    .replace(STATS, "self.stats['a'][0], z, self.stats['a'][1]"),
}
HELD_OUT = """\
class Norm(nn.Module):
    def forward(self, x, mode):
        if mode == "norm":
            self.scale = x.std(1, keepdim=True)
            return x / self.scale
        return x * self.scale  #!

norm, net = Norm(), nn.Linear(6, 4)
opt = torch.optim.Adam(net.parameters(), lr=0.01)
series = torch.randn(32, 10).cumsum(1)
for _ in range(4):
    past, future = series[:16].split((6, 4), 1)
    loss = (net(norm(past, "norm")) - norm(future, "norm")).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
outs, targets = [], []
with torch.no_grad():
    for rows in series[16:].split(8):
        past, future = rows[:, :6], rows[:, 6:]
        z = net(norm(past, "norm"))
        scaled = (z - norm(future, "norm")).abs().mean()
        outs.append(norm(z, "denorm").flatten())
        targets.append(future.flatten())
    print(scaled.item(), (torch.cat(outs) - torch.cat(targets)).abs().mean().item())
"""
FITTED = (
    NET.partition("for _")[0]
    + """\
x, y = torch.randn(8, 4), torch.randn(8, 4)
inputs, wanted = norm(x), norm(y)
for _ in range(4):
    loss = (norm.inverse(net(inputs)) - y).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
)
GIVEN_BACK, ALL_ROWS = 'norm(z, "denorm").flatten()', "std(1, keepdim=True)"
HELD_OUT_WRONG = {
    "an evaluation": HELD_OUT,
    "methods of their own": HELD_OUT.replace("    def forward(self, x, mode):\n        if", (
        "    def forward(self, x, mode):\n        return self.keep(x) if mode == 'norm' else self.back(x)\n"
        "    def keep(self, x, mode='norm'):\n        if")).replace("        return x * ", (
        "    def back(self, x):\n        return x * ")),
    "a dict and a loss": HELD_OUT.replace("self.scale", "self.kept['scale']").replace("    def", (
        "    kept = {}\n    def")).replace('outs.append(norm(z, "denorm").flatten())', (
        "print(nn.functional.l1_loss(norm(z, 'denorm'), future))")).partition("        targets.append")[0],
}  # fmt: skip
HELD_OUT_RIGHT = {
    "before the target": HELD_OUT.replace("        scaled =", '        out = norm(z, "denorm")\n        scaled =')
    .replace(GIVEN_BACK, "out.flatten()"),
    "one scale of a column": HELD_OUT.replace(ALL_ROWS, "std(0, keepdim=True)[:, :1]"),
    "scaled for the past again": HELD_OUT.replace("        outs", '        norm(past, "norm")\n        outs'),
    "another target": HELD_OUT.replace("future.flatten()", "future.flip(1).flatten()"),
    "a scaler of all data": FITTED,
    "the target is the input": NET.replace("future = torch.randn(8, 4), torch.randn(8, 4)", (
        "future = [torch.randn(8, 4)] * 2")),
}  # fmt: skip
WORDS = "of other data"


@pytest.mark.parametrize("name", WRONG)
def test_an_attribute_of_other_data_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.text.startswith("`z * self.scale` uses a `self.scale` of other data: `z` is computed with the value")
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", TWO_WRONG)
def test_an_attribute_of_the_data_that_is_not_the_target_is_named(tmp_path: Path, name: str) -> None:
    found = [each for each in sentences(tmp_path, TWO_WRONG[name]) if WORDS in each.text]
    assert [each.labels[0].span.line for each in found] == [marked(TWO_WRONG[name])]


@pytest.mark.parametrize("name", HELD_OUT_WRONG)
def test_a_scale_of_the_target_in_an_evaluation_is_named(tmp_path: Path, name: str) -> None:
    found = [each for each in sentences(tmp_path, HELD_OUT_WRONG[name]) if WORDS in each.text]
    assert [each.labels[0].span.line for each in found] == [marked(HELD_OUT_WRONG[name])]


ALL_RIGHT = {**RIGHT, **TWO_RIGHT, **HELD_OUT_RIGHT}


@pytest.mark.parametrize("script", ALL_RIGHT.values(), ids=ALL_RIGHT)
def test_other_attributes_are_left_alone(tmp_path: Path, script: str) -> None:
    assert [each.text for each in sentences(tmp_path, script) if WORDS in each.text] == []
