"""Checks the sentence about memories that are cut to what they already hold."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

SEGMENTS = """\
layer, out = nn.Linear(3, 3), nn.Linear(3, 1)
opt = torch.optim.SGD([*layer.parameters(), *out.parameters()], lr=0.01)
memory = torch.zeros(8, 0, 3)
for _ in range(8):
    x = layer(torch.randn(8, 2, 3))
    states = torch.cat([memory, x], dim=1)
    loss = out(states).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    memory = torch.cat([memory, x.detach()], dim=1)[:, :4]  #!
"""
CUT = "torch.cat([memory, x.detach()], dim=1)[:, :4]"
BANK = """\
import copy
layer = nn.Linear(3, 3)
slow = copy.deepcopy(layer).requires_grad_(False)
opt = torch.optim.SGD(layer.parameters(), lr=0.01)
bank = torch.randn(16, 3)
for _ in range(8):
    x = torch.randn(4, 3)
    with torch.no_grad():
        keys = nn.functional.normalize(slow(x), dim=1)
    loss = (layer(x) @ bank.T).logsumexp(1).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    bank = torch.vstack((bank, keys)).narrow(0, 0, 16)  #!
"""
REPLAY = """\
net = nn.Linear(4, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
memory = {"x": torch.empty(0, 4), "act": torch.empty(0, dtype=torch.long)}
for _ in range(16):
    x = torch.randn(8, 4)
    with torch.no_grad():
        act = net(x).argmax(1)
    fresh = {"x": x, "act": act}
    memory = {name: torch.cat((old, fresh[name]))[:32] for name, old in memory.items()}  #!
    rows = torch.randint(len(memory["x"]), (16,))
    value = net(memory["x"][rows]).gather(1, memory["act"][rows][:, None])
    loss = (value - memory["x"].index_select(0, rows)[:, :1]).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
PACKED = (
    REPLAY.replace('{"x": torch.empty(0, 4), "act": torch.empty(0, dtype=torch.long)}', "torch.empty(0, 5)")
    .replace('{"x": x, "act": act}', "torch.cat([x, act[:, None].float()], 1)")
    .replace("{name: torch.cat((old, fresh[name]))[:32] for name, old in memory.items()}  #!", "kept(memory, fresh)")
    .replace('rows = torch.randint(len(memory["x"]), (16,))', "rows = memory[torch.randperm(len(memory))[:16]]")
    .replace('memory["x"][rows]', "rows[:, :4]")
    .replace('memory["act"][rows][:, None]', "rows[:, 4:].long()")
    .replace('memory["x"].index_select(0, rows)', "rows")
)
PACKED = f"def kept(old, new):\n    joined = torch.cat([old, new])\n    return joined[:32]  #!\n{PACKED}"
CHOSEN = REPLAY.replace("torch.randn(8, 4)", "torch.randn(64, 4)").replace(
    "act = net(x).argmax(1)", "x = x[net(x).logsumexp(1).topk(8).indices]\n        act = net(x).argmax(1)"
)
FULL = SEGMENTS.replace("torch.zeros(8, 0, 3)", "torch.zeros(8, 4, 3)")
WRONG = {
    "its beginning": SEGMENTS,
    "its end": SEGMENTS.replace(CUT, "torch.cat([x.detach(), memory], dim=1)[:, -4:]"),
    "detached later": SEGMENTS.replace(CUT, "torch.cat([memory, x], dim=1)[:, :4].detach()"),
    "a name for the size": "SIZE = 4\n" + SEGMENTS.replace("[:, :4]", "[:, :SIZE]"),
    "narrow": FULL.replace("[:, :4]", ".narrow(1, 0, 4).contiguous()"),
    "narrow from the end": FULL.replace(CUT, "torch.narrow(torch.cat([x.detach(), memory], dim=1), 1, -4, 4)"),
    "a part": SEGMENTS.replace("[:, :4]", ".split(4, dim=1)[0]"),
    "rows of another model": BANK,
    "a replay memory": REPLAY,
    "a replay memory of rows, cut in a function": PACKED,
    "the last dimension": SEGMENTS.replace("layer(torch.randn(8, 2, 3))", "layer(torch.randn(8, 2, 3)).mT")
    .replace("torch.zeros(8, 0, 3)", "torch.zeros(8, 3, 0)")
    .replace("dim=1", "dim=-1")
    .replace("[:, :4]", "[..., :4]")
    .replace("out(states)", "out(states.mT)"),
}
SINKS = """\
layer, out = nn.Linear(3, 3), nn.Linear(3, 1)
opt = torch.optim.SGD([*layer.parameters(), *out.parameters()], lr=0.01)
for _ in range(3):
    loss, sinks = 0.0, torch.zeros(8, 0, 3)
    for _ in range(6):
        h = layer(torch.randn(8, 2, 3))
        sinks = torch.cat([sinks, h], dim=1)[:, :4]
        loss = loss + out(torch.cat([sinks, h], dim=1)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
RIGHT = {
    "halves of a flow": """\
layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(4)])
opt = torch.optim.SGD(layers.parameters(), lr=0.01)
for _ in range(4):
    x = torch.randn(8, 4)
    for k, layer in enumerate(layers):
        a, b = x.chunk(2, dim=1)
        x = torch.cat([a, b + layer(a)], 1) if k % 2 else torch.cat([a + layer(b), b], 1)
    loss = x.square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "the first positions of a pass": SINKS,
    "a replay memory of the newest": REPLAY.replace("[:32]", "[-32:]"),
    "choices that no model makes": REPLAY.replace("net(x).argmax(1)", "torch.randint(3, (8,))"),
    "the examples of a budget": CHOSEN,
    "narrow, the newest": BANK.replace("(bank, keys)", "(keys, bank)"),
    "the last part": BANK.replace(".narrow(0, 0, 16)", ".split([4, 16])[1]"),
    "the first ones of a slow model": BANK.replace("torch.randn(16, 3)", "torch.randn(4, 3)").replace(
        ".narrow(0, 0, 16)", "[:16]"
    ),
    "narrow from another place": BANK.replace("narrow(0, 0, 16)", "narrow(0, 4, 16)"),
    "the newest": SEGMENTS.replace(CUT, "torch.cat([memory, x.detach()], dim=1)[:, -4:]"),
    "the newest first": SEGMENTS.replace(CUT, "torch.cat([x.detach(), memory], dim=1)[:, :4]"),
    "longer than the run": SEGMENTS.replace("[:, :4]", "[:, :40]"),
    "only kept": SEGMENTS.replace("torch.cat([memory, x], dim=1)", "x"),
    "full at the end": SEGMENTS.replace("[:, :4]", "[:, :14]"),
    "two slices": SEGMENTS.replace(CUT, "torch.cat([memory, x.detach()], dim=1)[:, -4:, :3]"),
    "padding": SEGMENTS.replace(CUT, "torch.cat([memory, torch.zeros(8, 2, 3)], dim=1)[:, :4]"),
    "samples": SEGMENTS.replace(CUT, "torch.cat([memory, torch.randn(8, 2, 3)], dim=1)[:, :4]"),
    "entries that are replaced": SEGMENTS + "    if memory.shape[1] == 4:\n        memory[:, 0] = x[:, 0].detach()\n",
    "some of the new ones": SEGMENTS.replace(CUT, "torch.cat([memory[:, 1:], x.detach()], dim=1)[:, :4]"),
}
WORDS = "an earlier result of this line"


@pytest.mark.parametrize("name", WRONG)
def test_a_memory_that_takes_nothing_new_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert any(f"nothing of `{new}` is kept" in found.text for new in ("x", "x.detach()", "keys", "fresh[name]", "new"))
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_memories_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
