"""Checks the sentence about steps that move parameters although the script sets their gradients to zero."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

WHAT = "exactly zero there"
NETS = (
    "body, head = nn.Linear(4, 4), nn.Linear(4, 1)\nf = lambda: head(body(torch.randn(8, 4)).relu()).square().mean()\n"
)
ALL = "every = [*body.parameters(), *head.parameters()]\n"
ADAMW = ALL + "opt = torch.optim.AdamW(every, lr=0.01, weight_decay=0.1)\n"
PASS = "for step in range(6):\n    opt.zero_grad()\n    f().backward()\n"

WRONG = {
    "weight decay, from the start": (
        NETS + ADAMW + "def hold(module):\n    for p in module.parameters():\n        p.grad.zero_()  #!\n"
        + PASS + "    if step < 4:\n        hold(body)\n    opt.step()\n",
        "4 of 6 steps of `AdamW` move `body.weight` and `body.bias` by weight decay (0.1), although the gradients are",
    ),
    "momentum, after some steps": (
        NETS + ALL + "opt = torch.optim.SGD(every, lr=0.1, momentum=0.9)\n"
        + PASS + "    if step >= 2:\n        body.weight.grad.mul_(0)  #!\n    opt.step()\n",
        "4 of 6 steps of `SGD` move `body.weight` by momentum, although the gradient is exactly zero there",
    ),
    "a new gradient of zeros": (
        NETS + ALL + "opt = torch.optim.Adam(every, lr=0.01)\n" + PASS
        + "    if step > 2:\n        for p in body.parameters():\n"
        "            p.grad = torch.zeros_like(p.grad)  #!\n    opt.step()\n",
        "3 of 6 steps of `Adam` move `body.weight` and `body.bias` by momentum",
    ),
    "through data, and clipped": (
        NETS + ADAMW + PASS + "    if step % 2:\n        body.bias.grad.data.zero_()\n"
        "        body.weight.grad.data.zero_()  #!\n    nn.utils.clip_grad_norm_(every, 1.0)\n    opt.step()\n",
        "3 of 6 steps of `AdamW` move `body.weight` by weight decay (0.1) and momentum",
    ),
    "a hook that runs after the accumulation": (
        NETS + ADAMW + "def hold(p):\n    if step % 2:\n        p.grad.zero_()  #!\nfor p in body.parameters():\n"
        "    p.register_post_accumulate_grad_hook(hold)\n" + PASS + "    opt.step()\n",
        "3 of 6 steps of `AdamW` move `body.weight` and `body.bias` by weight decay (0.1) and momentum",
    ),
    "all at once": (
        NETS + ADAMW + PASS
        + "    if step % 2:\n        torch._foreach_zero_([p.grad for p in body.parameters()])  #!\n"
        "    nn.utils.clip_grad_norm_(every, 1.0)\n    opt.step()\n",
        "3 of 6 steps of `AdamW` move `body.weight` and `body.bias` by weight decay (0.1) and momentum",
    ),
    "all times zero": (
        NETS + ADAMW + PASS
        + "    if step % 2:\n        torch._foreach_mul_([p.grad for p in body.parameters()], 0.0)  #!\n"
        "    opt.step()\n",
        "3 of 6 steps of `AdamW` move `body.weight` and `body.bias` by weight decay (0.1) and momentum",
    ),
    "a hook": (
        NETS + ADAMW + "held = True\nbody.weight.register_hook(lambda g: g * 0 if held else g)  #!\n"
        + PASS + "    opt.step()\n    held = step < 3\n",
        "4 of 6 steps of `AdamW` move `body.weight` by weight decay (0.1)",
    ),
}  # fmt: skip
OTHER = """
other = nn.Linear(4, 1)
opt = torch.optim.AdamW([*body.parameters(), *head.parameters(), *other.parameters()], lr=0.01)
g = lambda: other(body(torch.randn(8, 4))).square().mean()
"""
TABLE = """
table = nn.Embedding(6, 3)
opt = torch.optim.AdamW(table.parameters())
for step in range(6):
    opt.zero_grad()
    table(torch.tensor([step, 1])).square().sum().backward()
    table.weight.grad[0].zero_()
    opt.step()
"""
DEAD = """
for step in range(6):
    opt.zero_grad()
    hidden = body(torch.randn(8, 4)) - (100 if step % 2 else 0)
    head(hidden.relu()).square().mean().backward()
    opt.step()
"""
LOSS = "for step in range(6):\n    opt.zero_grad({})\n    loss = {}\n    loss.backward()\n    opt.step()\n"
AGREE = """
g = lambda: (head(torch.randn(6, 4)) - torch.randn(6, 1)).square().mean()
every = list(head.parameters())
for step in range(20):
    opt.zero_grad()
    both = [torch.autograd.grad(g(), every) for _ in range(2)]
    g().backward()
    for p, a, b in zip(every, *both):
        p.grad.mul_((a.sign() == b.sign()).float())
    opt.step()
"""
RIGHT = {
    "no gradient": NETS + ADAMW + PASS + "    if step < 4:\n        body.zero_grad()\n    opt.step()\n",
    "nothing moves": NETS + ALL + "opt = torch.optim.SGD(every, lr=0.1)\n" + PASS
    + "    if step < 4:\n        body.weight.grad.zero_()\n    opt.step()\n",
    "frozen by the flag": NETS + ADAMW + "body.requires_grad_(False)\n" + PASS
    + "    opt.step()\n    body.requires_grad_(step > 2)\n",
    "a loss that is not used in some steps": NETS
    + OTHER
    + LOSS.format("set_to_none=False", "(f if step % 2 else g)()"),
    "a weight of zero": NETS + OTHER + LOSS.format("", "f() + max(0, step - 2) * g()"),
    "some rows alone": TABLE,
    "large parts": NETS + ALL + "opt = torch.optim.SGD(every, lr=0.1, momentum=0.9)\n"
    + AGREE.replace("(a.sign() == b.sign())", "(p.grad.abs() > 0.5)"),
    "parts whose signs agree": NETS + ALL + "opt = torch.optim.SGD(every, lr=0.1, momentum=0.9)\n" + AGREE,
    "dead units at some steps": NETS + ADAMW + DEAD,
    "dead units, and gradients that are scaled": NETS + ADAMW + DEAD.replace(
        "    opt.step()", "    torch._foreach_mul_([p.grad for p in every], 0.5)\n    opt.step()"),
    "dead units, and gradients that are clipped": NETS + ADAMW + DEAD.replace(
        "    opt.step()", "    nn.utils.clip_grad_norm_(every, 1.0)\n    opt.step()"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_names_steps_that_move_on_zeros(case: str, tmp_path: Path) -> None:
    body, text = WRONG[case]
    found = [each for each in sentences(tmp_path, body) if WHAT in each.text and text in each.text]
    assert marked(body) in [each.labels[0].span.line for each in found]


@pytest.mark.parametrize("case", RIGHT)
def test_says_nothing_of_other_zeros(case: str, tmp_path: Path) -> None:
    assert not any(WHAT in each.text for each in sentences(tmp_path, RIGHT[case]))


MASKED = """
for _ in range(3):
    nn.Linear(2, 2)(torch.ones(2)).sum().item()
table = nn.Embedding(6, 3)
mask = torch.ones(6, 1)
mask[:4] = {value}
opt = torch.optim.AdamW(table.parameters(), weight_decay={decay})
table.weight.register_hook(lambda grad: {change})
for step in range(6):
    opt.zero_grad()
    table(torch.tensor([4, 5])).square().sum().backward()
    opt.step()
"""
ROWS = "12 of 18 elements of `table.weight` had gradients of zeros at each step, and are moved by weight decay (0.1)"


def test_names_rows_that_a_mask_in_a_hook_does_not_hold(tmp_path: Path) -> None:
    body = MASKED.format(value="0", decay="0.1", change="grad * mask")
    (found,) = (each for each in sentences(tmp_path, body) if each.text == ROWS)
    assert found.labels[1].role == "hook_registered_here"


@pytest.mark.parametrize(("decay", "change"), [("0.0", "grad * mask"), ("0.1", "grad * 0.5"), ("0.1", "None")])
def test_says_nothing_of_rows_that_no_mask_holds(tmp_path: Path, decay: str, change: str) -> None:
    body = MASKED.format(value="0", decay=decay, change=change)
    assert not any("gradients of zeros at each step" in each.text for each in sentences(tmp_path, body))


@pytest.mark.parametrize("line", ["nn.utils.clip_grad_norm_(table.parameters(), 0.1)", "table.weight.grad.mul_(0.5)"])
def test_scaling_a_gradient_makes_no_zeros(tmp_path: Path, line: str) -> None:
    body = MASKED.format(value="0", decay="0.1", change="None").replace("    opt.step()", f"    {line}\n    opt.step()")
    assert not any("gradients of zeros at each step" in each.text for each in sentences(tmp_path, body))


def test_a_mask_on_the_gradient_itself_counts(tmp_path: Path) -> None:
    line = "table.weight.grad.mul_(mask)"
    body = MASKED.format(value="0", decay="0.1", change="None").replace("    opt.step()", f"    {line}\n    opt.step()")
    assert any(each.text == ROWS for each in sentences(tmp_path, body))


COPIED = """
table = nn.Embedding(6, 3)
copy = table.weight.detach().clone().requires_grad_()
opt = torch.optim.AdamW([copy], weight_decay=0.1)
for step in range(6):
    table(torch.tensor([4, 5])).square().sum().backward()
    copy.grad = table.weight.grad / 2
    table.weight.grad = None
    opt.step()
    table.weight.data.copy_(copy.data)
"""


def test_zeros_of_another_gradient_are_none_of_the_script(tmp_path: Path) -> None:
    body = COPIED
    assert not any("gradients of zeros at each step" in each.text for each in sentences(tmp_path, body))


LATER = """
table = nn.Parameter(torch.randn(4, 3))
passes = lambda rows: table[rows].square().sum().backward()
def fit(opt, rows, steps=6):
    for step in range(steps):
        opt.zero_grad()
        passes(rows)
        opt.step()
fit(torch.optim.Adam([table], lr=0.01), torch.arange(4))
table.data[3] = table.data[:3].mean(dim=0)
mask = torch.zeros(4, 3)
mask[3] = 1
def held(grad):
    return grad * mask
hook = table.register_hook(held)  #!
fit(torch.optim.Adam([table], lr=0.01, weight_decay=0.1), torch.arange(4))
"""
PUT = "    return grad * mask"
LATER_ROWS = (
    "9 of 12 elements of `table` had gradients of zeros at each of the 6 steps of a later `Adam`, and are moved by "
    "weight decay (0.1)"
)
LATER_WRONG = {
    "a product": LATER,
    "items of a copy": LATER.replace(PUT, "    grad = grad.clone()\n    grad[:3] = 0\n    return grad"),
    "a part of a copy": LATER.replace(PUT, "    grad = grad.clone()\n    grad[:3].zero_()\n    return grad"),
    "items of zeros": LATER.replace(PUT, "    out = torch.zeros_like(grad)\n    out[3] = grad[3]\n    return out"),
    "a choice": LATER.replace(PUT, "    return torch.where(mask.bool(), grad, torch.zeros_like(grad))"),
    "AdamW": LATER.replace("Adam([table], lr=0.01, w", "AdamW([table], lr=0.01, w"),
    "the gradient itself": LATER.replace("hook = table.register_hook(held)  #!\n", "hooked = True\n").replace(
        "        opt.step()", "        if 'hooked' in globals(): table.grad.mul_(mask)  #!\n        opt.step()"),
}  # fmt: skip
SECOND = "fit(torch.optim.Adam([table], lr=0.01, weight_decay=0.1), torch.arange(4))"
LATER_RIGHT = {
    "no decay": LATER.replace(", weight_decay=0.1", ""),
    "rows that no batch uses": LATER.replace("hook = table.register_hook(held)  #!\n", "").replace(
        SECOND, SECOND.replace("arange(4)", "arange(2)")),
    "rows that are seen at some steps": LATER.replace(PUT, "    return grad * (mask + 0.5)").replace(
        "passes(rows)", "passes(rows[step % 4:])"),
    "a row of padding": LATER.replace("table.data[3] = table.data[:3].mean(dim=0)\n", "table.data[3] = 0\n").replace(
        "mask = torch.zeros(4, 3)\nmask[3] = 1", "mask = torch.ones(4, 3)\nmask[3] = 0"),
    "a row of padding, and rows that no batch ever uses": LATER.replace(
        "table.data[3] = table.data[:3].mean(dim=0)", "table.data[3] = 0").replace(
        "torch.arange(4)", "torch.tensor([0, 3])").replace("mask[3] = 1", "mask[:3] = 1"),
    "rows that are put back": LATER.replace("mask = torch", "old = table.detach().clone()\nmask = torch").replace(
        "        opt.step()", "        opt.step()\n        if 'old' in globals(): table.data[:3] = old[:3]"),
    "weights that are masked again": LATER.replace("mask = torch", "keep = torch.ones(4, 3)\nmask = torch").replace(
        "        opt.step()", "        opt.step()\n        if 'keep' in globals(): table.data.mul_(keep)"),
    "gradients that are not finite": LATER.replace(PUT, "    return grad * grad.isfinite()").replace(
        SECOND, SECOND.replace("arange(4)", "arange(2)")),
    "a guard, and rows that no batch uses": LATER.replace("hook = table.register_hook(held)  #!\n", "").replace(
        "        opt.step()", "        table.grad[table.grad.isnan()] = 0\n        opt.step()").replace(
        SECOND, SECOND.replace("arange(4)", "arange(2)")),
    "a guard from the first step on": LATER.partition("fit(torch")[0].replace(
        "        opt.step()", "        table.grad[table.grad.isnan()] = 0\n        opt.step()")
        + SECOND.replace("arange(4)", "arange(2)"),
    "a hook that weighs rows, and rows that no batch uses": LATER.replace(
        PUT, "    return grad * (mask + 0.5)").replace(SECOND, SECOND.replace("arange(4)", "arange(2)")),
    "a hook of the first optimizer alone": LATER.replace("fit(torch.optim.Adam([table], lr=0.01), ", (
        "first = torch.optim.Adam([table], lr=0.01)\nfit(first, ")).replace(
        SECOND, "fit(first, torch.arange(4))\nhook.remove()\n" + SECOND.replace("arange(4)", "arange(2)")),
    "two optimizers in turn": LATER.replace(SECOND, (
        "opts = [torch.optim.Adam([table], lr=0.01), torch.optim.Adam([table], lr=0.01, weight_decay=0.1)]\n"
        "hook.remove()\nfor turn in range(6):\n    rows = torch.arange(4) if turn % 2 == 0 else torch.arange(2)\n"
        "    fit(opts[turn % 2], rows, 2)")),
}  # fmt: skip


@pytest.mark.parametrize("case", LATER_WRONG)
def test_names_parts_that_a_later_optimizer_moves(case: str, tmp_path: Path) -> None:
    body = LATER_WRONG[case]
    (found,) = (each for each in sentences(tmp_path, body) if each.text.replace("AdamW", "Adam") == LATER_ROWS)
    assert found.labels[1].span.line == marked(body)


@pytest.mark.parametrize("case", LATER_RIGHT)
def test_says_nothing_of_parts_that_a_later_optimizer_may_move(case: str, tmp_path: Path) -> None:
    assert not any("gradients of zeros at each" in each.text for each in sentences(tmp_path, LATER_RIGHT[case]))


def test_counts_the_parts_of_several_parameters_together(tmp_path: Path) -> None:
    body = LATER.replace("passes = ", "other = nn.Parameter(torch.randn(4, 3))\npasses = ").replace(
        "table[rows].square()", "(table + other)[rows].square()"
    )
    body = body.replace("[table]", "[table, other]").replace("hook = table.register_hook(held)  #!", (
        "for p in (table, other): p.register_hook(held)"))  # fmt: skip
    (found,) = (each for each in sentences(tmp_path, body) if "gradients of zeros at each" in each.text)
    assert found.text.startswith("18 of 24 elements of `table` and `other` had gradients of zeros at each of the 6")
