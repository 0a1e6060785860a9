"""Checks the sentences about gradients of a pass in eval mode that a script only looks at, and that a step uses."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

HEAD = """\
from torch.nn.functional import mse_loss
model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Dropout(0.1), nn.Linear(4, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.05)
x, y, x_val, y_val = torch.randn(16, 3), torch.randn(16, 1), torch.randn(8, 3), torch.randn(8, 1)
def norm():
    return torch.stack([p.grad.norm() for p in model.parameters()]).norm().item()
def train(step, zero=opt.zero_grad):
    model.train()
    mse_loss(model(x), y).backward()
    opt.step()
    zero()
"""
LOOK = """\
def look():
    model.eval()
    mse_loss(model(x_val), y_val).backward()  #!
    slope = norm()
    model.train()
    return slope
"""
WRONG = {
    "a callback after each second step": HEAD + LOOK + """\
for step in range(8):
    train(step)
    if step % 2:
        look()
""",
    "gradients of zeros": HEAD + LOOK + """\
for step in range(8):
    train(step, lambda: opt.zero_grad(set_to_none=False))
    if step % 2:
        print(look())
""",
    "before the batches of an epoch": HEAD + LOOK + """\
for epoch in range(3):
    look()
    for step in range(3):
        train(step)
""",
    "in the loop, the norm by clipping": HEAD + """\
for epoch in range(4):
    model.train()
    for _ in range(2):
        for a, b in zip(x.split(4), y.split(4)):
            (mse_loss(model(a), b) / 4).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad()
    model.eval()
    mse_loss(model(x_val), y_val).backward()  #!
    print(nn.utils.clip_grad_norm_(model.parameters(), float("inf")).item())
""",
    "several batches of the validation": HEAD + """\
def look():
    model.eval()
    for a, b in zip(x_val.split(4), y_val.split(4)):
        mse_loss(model(a), b).backward()  #!
    return norm()
for step in range(8):
    train(step)
    if step % 3 == 1:
        look()
""",
}  # fmt: skip
EVERY_SECOND = """\
for step in range(8):
    train(step)
    if step % 2:
        look()
"""
RIGHT = {
    "cleared after the look": HEAD + LOOK.replace("return", "opt.zero_grad(); return") + EVERY_SECOND,
    "cleared before each pass": HEAD + LOOK + """\
for step in range(8):
    opt.zero_grad()
    train(step, lambda: None)
    if step % 2:
        look()
""",
    "autograd.grad": HEAD + """\
def look():
    model.eval()
    grads = torch.autograd.grad(mse_loss(model(x_val), y_val), list(model.parameters()))
    model.train()
    return sum(each.norm() for each in grads)
""" + EVERY_SECOND,
    "put back": HEAD + """\
def look():
    model.eval()
    kept = [p.grad for p in model.parameters()]
    for p in model.parameters():
        p.grad = None
    mse_loss(model(x_val), y_val).backward()
    slope = norm()
    for p, grad in zip(model.parameters(), kept):
        p.grad = grad
    model.train()
""" + EVERY_SECOND,
    "subtracted before the step": HEAD + """\
def look():
    model.eval()
    mse_loss(model(x_val), y_val).backward()
    return norm(), [p.grad.clone() for p in model.parameters()]
def train(step, kept):
    model.train()
    mse_loss(model(x), y).backward()
    for p, each in zip(model.parameters(), kept):
        p.grad.sub_(each)
    opt.step()
    opt.zero_grad()
for step in range(8):
    train(step, kept if step % 2 else ())
    if step % 2 == 0:
        slope, kept = look()
""",
    "a penalty at each second step, whose norm is printed": HEAD + """\
for step in range(8):
    model.train()
    if step % 2:
        model.eval()
        (0.1 * model(x_val).square().mean()).backward()
        print(norm())
        model.train()
    mse_loss(model(x), y).backward()
    opt.step()
    opt.zero_grad()
""",
    "a penalty after the main pass": HEAD + """\
for step in range(8):
    model.train()
    mse_loss(model(x), y).backward()
    print(norm())
    if step % 2:
        model.eval()
        (0.1 * model(x_val).square().mean()).backward()
        print(norm())
    opt.step()
    opt.zero_grad()
""",
    "a penalty for the next step, in training mode beside a teacher": HEAD + """\
teacher = nn.Linear(3, 1)
for step in range(8):
    train(step)
    if step % 2:
        teacher.eval()
        (0.1 * mse_loss(model(x_val), teacher(x_val).detach())).backward()
        print(norm())
""",
    "a replay for the next step, which nobody reads": HEAD + """\
for step in range(8):
    train(step)
    if step % 2:
        model.eval()
        (0.1 * mse_loss(model(x_val), y_val)).backward()
""",
    "a penalty of each second group of batches": HEAD + """\
for group in range(8):
    if group % 2:
        model.eval()
        (0.1 * model(x_val).square().mean()).backward()
        print(norm())
    model.train()
    for place, (a, b) in enumerate(zip(x.split(4), y.split(4)), start=1):
        (mse_loss(model(a), b) / 4).backward()
        if place == 4:
            opt.step()
            opt.zero_grad()
""",
    "a replay at each sixth batch of an accumulation": HEAD + """\
for step in range(24):
    model.train()
    mse_loss(model(x), y).backward()
    if step % 4 == 3:
        opt.step()
        opt.zero_grad()
    if step % 6 == 3:
        model.eval()
        (0.1 * mse_loss(model(x_val), y_val)).backward()
        print(norm())
""",
    "a step of its own": HEAD + """\
for step in range(8):
    train(step)
    if step % 2:
        model.eval()
        (0.1 * model(x_val).square().mean()).backward()
        print(norm())
        opt.step()
        opt.zero_grad()
""",
    "accumulated batches, the norm after each": HEAD + """\
for step in range(8):
    model.train()
    (mse_loss(model(x), y) / 2).backward()
    print(norm())
    if step % 2:
        opt.step()
        opt.zero_grad()
""",
    "importances, cleared before training": HEAD + """\
for task in range(3):
    model.eval()
    mse_loss(model(x_val), y_val).backward()
    squares = [p.grad.square() for p in model.parameters()]
    opt.zero_grad()
    for step in range(3):
        train(step)
""",
}  # fmt: skip
WORDS = "whose gradients the script reads and does not clear"


@pytest.mark.parametrize("name", WRONG)
def test_gradients_that_a_look_leaves_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert "steps use sums of gradients of `model[0].weight`, `model[0].bias`" in found.text
    assert "a part is left from a pass after `model.eval()`" in found.text
    assert found.labels[0].span.line == marked(WRONG[name])


def test_the_steps_are_counted(tmp_path: Path) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG["a callback after each second step"]) if WORDS in each.text)
    assert found.text.startswith("3 of 8 steps use sums")


@pytest.mark.parametrize("name", RIGHT)
def test_passes_that_belong_to_a_step_or_are_cleared_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
