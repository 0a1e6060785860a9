"""Checks the sentences about copies of weights that autocast keeps while steps change the weights."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

HEAD = """\
from contextlib import ExitStack
net = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.5)
x, y = torch.randn(8, 4), torch.randn(8, 1)
def loss_of(step=0):
    return nn.functional.mse_loss(net(x[: 8 - step]).float(), y[: 8 - step])
def update(loss):
    opt.zero_grad(); loss.backward(); opt.step()
"""
WRONG = {
    "a region around an epoch": """\
for _ in range(2):
    with torch.autocast("cpu", dtype=torch.bfloat16):  #!
        for step in range(4):
            update(loss_of(step))
""",
    "a decorator": """\
@torch.amp.autocast("cpu")
def epoch():
    for _ in range(4):
        update(loss_of())
epoch()  #!
""",
    "a stack, and an evaluation after each step": """\
with ExitStack() as stack:
    stack.enter_context(torch.amp.autocast("cpu", dtype=torch.bfloat16))  #!
    for step in range(4):
        update(loss_of())
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            loss_of() if step % 2 else None
""",
    "entered by hand, with updates by hand": """\
region = torch.cpu.amp.autocast(dtype=torch.bfloat16)
region.__enter__()  #!
for _ in range(4):
    net.zero_grad()
    loss_of().backward()
    with torch.no_grad():
        for p in net.parameters():
            p -= 0.1 * p.grad
region.__exit__(None, None, None)
""",
    "layers with weights of their own": """\
conv, rnn = nn.Conv1d(4, 4, 1), nn.LSTM(4, 6, batch_first=True)
many = torch.optim.AdamW([*net.parameters(), *conv.parameters(), *rnn.parameters()])
with torch.autocast(device_type="cpu", dtype=torch.bfloat16):  #!
    for _ in range(4):
        out = net[2](rnn(conv(x[:, :, None]).transpose(1, 2))[0])
        many.zero_grad(); (out.float() ** 2).mean().backward(); many.step()
""",
}
RIGHT = {
    "without the cache": """\
with torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=False):
    for _ in range(4):
        update(loss_of())
""",
    "a cache that is cleared, and two uses of a layer": """\
with torch.autocast("cpu", dtype=torch.bfloat16):
    for _ in range(4):
        update(loss_of() + loss_of())
        torch.clear_autocast_cache()
""",
    "a region for each forward pass": """\
for _ in range(4):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = loss_of() + loss_of()
    update(loss)
""",
    "a region of float32 inside, and one for each pass": """\
with torch.autocast("cpu", enabled=False):
    for _ in range(2):
        for _ in range(2):
            update(loss_of())
for _ in range(4):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = net(x)
        with torch.autocast("cpu", enabled=False):
            loss = (out.float() - y).square().mean() + (out.float() ** 2).mean()
    update(loss)
""",
    "several passes for a step": """\
for _ in range(3):
    opt.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for _ in range(4):
            loss_of().backward()
    opt.step()
""",
    "a critic whose one step comes before the loss of the other network": """\
made = nn.Linear(4, 4)
other = torch.optim.SGD(made.parameters(), lr=0.1)
for _ in range(4):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        update((net(made(x).detach()) - net(x)).float().mean())
        other.zero_grad(); net(made(x)).float().mean().neg().backward(); other.step()
""",
    "frozen weights and an evaluation": """\
for p in net[0].parameters():
    p.requires_grad_(False)
for _ in range(4):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        hidden = net[0](x)
    update(net[2](hidden.float()).square().mean())
with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
    for _ in range(4):
        loss_of()
""",
}
WORDS = "keeps the copies of the first use until its region ends"


@pytest.mark.parametrize("name", WRONG)
def test_a_region_around_several_steps_is_named(tmp_path: Path, name: str) -> None:
    script = HEAD + WRONG[name]
    (found,) = (each for each in sentences(tmp_path, script) if WORDS in each.text)
    assert "updates have made outdated" in found.text
    assert found.labels[0].span.line == marked(script)


@pytest.mark.parametrize("name", RIGHT)
def test_copies_that_are_made_anew_after_steps_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, HEAD + RIGHT[name]) if WORDS in each.text] == []
