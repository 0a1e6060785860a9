"""Checks the sentences about hooks that never run, and hooks that return nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

NET = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(4, 8), nn.Linear(8, 1)

    def forward(self, x):
        return self.last(self.first(x).tanh())

net = Net()
kept = []
"""
TRAIN = """\
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    opt.zero_grad()
    net(torch.randn(8, 4)).square().mean().backward()
    opt.step()
"""
HOOK = "def keep(grad):\n    grad = grad * torch.tensor([1.0, 1.0, 0.0, 0.0])  #!\n\n"
FORWARD = "def noisy(module, args, out):\n    out = out + 0.1 * torch.randn_like(out)  #!\n\n"
ON_WEIGHT, ON_MODULE = "net.first.weight.register_hook(keep)\n", "net.first.register_forward_hook(noisy)\n"
NOTHING = {
    "a gradient": NET + HOOK + ON_WEIGHT + TRAIN,
    "an expression": NET + HOOK.replace("grad = grad * torch.tensor([1.0, 1.0, 0.0, 0.0])", "grad.clamp(-1, 1)")
    + ON_WEIGHT + TRAIN,
    "the argument gets another value": NET + HOOK.replace("grad = grad *", "other = grad *").replace(
        "  #!", "\n    kept.append(other)\n    grad = other  #!") + ON_WEIGHT + TRAIN,
    "another name": NET + HOOK.replace("grad =", "masked =") + ON_WEIGHT + TRAIN,
    "all parameters": NET + HOOK.replace("torch.tensor([1.0, 1.0, 0.0, 0.0])", "0.5")
    + "for p in net.parameters():\n    p.register_hook(keep)\n" + TRAIN,
    "a result": NET + FORWARD + ON_MODULE + TRAIN,
    "a method": NET + "class Mask:\n    def apply(self, grad):\n        half = 0.5\n        grad = grad * half  #!\n\n"
    "net.first.weight.register_hook(Mask().apply)\n" + TRAIN,
    "arguments": NET + "def noisy(module, args):\n    x = args[0] + 0.1 * torch.randn_like(args[0])  #!\n\n"
    + "net.first.register_forward_pre_hook(noisy)\n" + TRAIN,
}  # fmt: skip
SOMETHING = {
    "a new gradient": NET + HOOK.replace("grad =", "return").replace("  #!", "") + ON_WEIGHT + TRAIN,
    "in place": NET + HOOK.replace("grad = grad * torch.tensor([1.0, 1.0, 0.0, 0.0])", "grad.mul_(0.5)")
    + ON_WEIGHT + TRAIN,
    "in place, by a statement": NET + HOOK.replace("grad = grad *", "grad *=") + ON_WEIGHT + TRAIN,
    "kept": NET + HOOK.replace("  #!", "\n    kept.append(grad)") + ON_WEIGHT + TRAIN,
    "kept without a graph": NET + FORWARD.replace("out + 0.1 * torch.randn_like(out)  #!",
                                                  "out.detach()\n    kept.append(out)") + ON_MODULE + TRAIN,
    "into a dict": NET + "seen = {}\n" + FORWARD.replace("out = out + 0.1 * torch.randn_like(out)  #!",
                                                         "seen['out'] = out.detach()") + ON_MODULE + TRAIN,
    "printed": NET + HOOK.replace("grad = grad * torch.tensor([1.0, 1.0, 0.0, 0.0])  #!", "print(grad.norm())")
    + ON_WEIGHT + TRAIN,
    "a size": NET + FORWARD.replace("out = out + 0.1 * torch.randn_like(out)  #!",
                                    "size = out.shape[0]\n    kept.append(size)") + ON_MODULE + TRAIN,
}  # fmt: skip
CALLED = TRAIN.replace("net(torch.randn(8, 4))", "net.forward(torch.randn(8, 4))")
NEVER = {
    "forward() of a module": NET.replace("self.first(x)", "self.first.forward(x)")
    + "net.first.register_forward_hook(lambda module, args, out: out.mul(0.5))  #!\n" + TRAIN,
    "forward() of the net": NET + FORWARD.replace("out = out + ", "return out + ").replace("  #!", "")
    + "net.register_forward_hook(noisy)  #!\n" + CALLED,
    "a function with the weight": NET.replace("self.first(x)", "nn.functional.linear(x, self.first.weight)")
    + FORWARD.replace("out = out + ", "return out + ").replace("  #!", "") + ON_MODULE[:-1] + "  #!\n" + TRAIN,
    "a gradient that no pass reaches": NET + HOOK.replace("grad =", "return").replace("  #!", "")
    + "probe = (net.first.weight * 2).sum()\nprobe.register_hook(keep)  #!\n" + TRAIN,
    "one that is removed at once": NET + "handle = net.first.weight.register_hook(lambda grad: grad * 0.5)  #!\n"
    "handle.remove()\n" + TRAIN,
}  # fmt: skip
NEVER["a backward hook of a module that is not called"] = (
    NET.replace("self.first(x)", "self.first.forward(x)")
    + "net.first.register_full_backward_hook(lambda module, given, out: kept.append(out[0].norm()))  #!\n" + TRAIN
)  # fmt: skip
COLLECTED = (
    NET.replace("self.first(x)", "self.first.forward(x)")
    + "net.first.register_forward_hook(lambda module, args, out: kept.append(out.abs().mean()))  #!\n"
    + TRAIN
)
NEVER |= {
    "one that collects": COLLECTED,
    "an object that collects": NET.replace("self.first(x)", "self.first.forward(x)") + "class Tap:\n"
    "    def __call__(self, module, args):\n        kept.append(torch.mean(args[0]))\n\n"
    "net.first.register_forward_pre_hook(Tap())  #!\n" + TRAIN,
}  # fmt: skip
RUNS = {
    "one that collects from a module that is called": COLLECTED.replace("self.first.forward(x)", "self.first(x)"),
    "one that rarely collects": COLLECTED.replace("out.abs().mean())", "out.abs().mean()) if len(out) > 99 else None"),
    "one that mostly leaves early": COLLECTED.replace("self.first.forward(x)", "self.first(x)").replace(
        "net.first.register_forward_hook(lambda module, args, out: kept.append(out.abs().mean()))  #!",
        "def watch(module, args, out):\n    for each in args:\n        if not kept:\n            return\n"
        "    kept.append(out.abs().mean())\n\nnet.first.register_forward_hook(watch)"),
    "a set": NET + "class Tags(nn.Module):\n    def forward(self, names):\n        return set(names)\n\ntags = Tags()\n"
    "tags.register_forward_hook(lambda module, args, out: out.add('bias'))\n"
    + TRAIN.replace("opt.step()", "opt.step()\n    tags(['weight'])"),
    "a part that a setting leaves out": NET.replace(
        "nn.Linear(8, 1)\n", "nn.Linear(8, 1)\n        self.aux = nn.Linear(4, 1)\n").replace(
        "        return", "        if len(kept) > 99:\n            x = x + self.aux(x)\n        return")
    + "net.aux.register_forward_hook(lambda module, args, out: kept.append(out.abs().mean()))\n" + TRAIN,
    "one of a head that the loss leaves out": NET.replace(
        "nn.Linear(8, 1)\n", "nn.Linear(8, 1)\n        self.aux = nn.Linear(8, 1)\n").replace(
        "        return self.last(self.first(x).tanh())",
        "        h = self.first(x).tanh()\n        return self.last(h), self.aux(h)")
    + "net.aux.register_full_backward_hook(lambda module, given, out: kept.append(out[0].norm()))\n"
    + TRAIN.replace("torch.randn(8, 4))", "torch.randn(8, 4))[0]"),
    "a method of the program": NET + "class Span:\n    def abs(self):\n        return 1\n\nclass Ask(nn.Module):\n"
    "    def forward(self):\n        return Span()\n\nask = Ask()\n"
    "ask.register_forward_hook(lambda module, args, out: kept.append(out.abs()))\n"
    + TRAIN.replace("opt.step()", "opt.step()\n    ask()"),
    "a module": NET + FORWARD.replace("out = out + ", "return out + ").replace("  #!", "") + ON_MODULE + TRAIN,
    "one that is removed": NET + "handle = net.register_forward_hook(lambda module, args, out: out * 0.5)\n"
    "handle.remove()\n" + TRAIN,
    "all modules, also those that are not called": NET + "net.rest = nn.ModuleList([nn.Linear(2, 2)])\n" + FORWARD
    .replace("out = out + 0.1 * torch.randn_like(out)  #!", "kept.append(out * 1)")
    + "for module in net.modules():\n    module.register_forward_hook(noisy)\n" + TRAIN,
    "one that only keeps": NET.replace("self.first(x)", "self.first.forward(x)")
    + "net.first.register_forward_hook(lambda module, args, out: kept.append(out))\n" + TRAIN,
    "one that is rarely needed": NET.replace("self.first(x)", "self.first.forward(x)")
    + "def check(module, args, out):\n    if out.shape[0] > 100:\n        return out * 0.5\n\n"
    "net.last.register_forward_hook(check)\n" + TRAIN,
    "one that is removed later": NET + "handle = net.first.weight.register_hook(lambda grad: grad * 0.5)\n"
    + TRAIN + "handle.remove()\n",
    "one that nothing reaches, removed at the end": NET + "probe = nn.Parameter(torch.ones(2))\n"
    "handle = probe.register_hook(lambda grad: grad * 0.5)\n" + TRAIN + "handle.remove()\n",
    "after training": NET + TRAIN + "net.first.weight.register_hook(lambda grad: grad * 2)\n",
}  # fmt: skip


@pytest.mark.parametrize("name", NOTHING)
def test_a_hook_that_returns_nothing_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, NOTHING[name]) if "returns nothing" in each.text)
    assert found.labels[0].span.line == marked(NOTHING[name])


@pytest.mark.parametrize("name", SOMETHING)
def test_a_hook_that_does_something_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, SOMETHING[name]) if "returns nothing" in each.text] == []


@pytest.mark.parametrize("name", NEVER)
def test_a_hook_that_never_runs_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, NEVER[name]) if "never runs" in each.text)
    assert found.labels[0].span.line == marked(NEVER[name])


@pytest.mark.parametrize("name", RUNS)
def test_a_hook_that_runs_or_may_run_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RUNS[name]) if "never runs" in each.text] == []
