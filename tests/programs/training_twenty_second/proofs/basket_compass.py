import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import re
import torch

FIX = ("torch.triu(torch.ones(length, length, dtype=torch.bool), diagonal=1)",
       "torch.tril(torch.ones(length, length, dtype=torch.bool))")


def future_leak(g):
    """How far the logits of position 3 move when only later items change, and when only an earlier item changes."""
    model, seq = g["model"].eval(), g["test"][:64, :-1]
    late, early = seq.clone(), seq.clone()
    late[:, 4:] = (late[:, 4:] + 7) % 40
    early[:, 2] = (early[:, 2] + 7) % 40
    with torch.no_grad():
        base = model(seq)[:, 3]
        return (model(late)[:, 3] - base).abs().max().item(), (model(early)[:, 3] - base).abs().max().item()


def hit1(g):
    return float(re.findall(r"hit@1 ([\d.]+)", g.output)[-1])


bad, good = run("basket_compass"), run("basket_compass", FIX)
print("future/past influence, wrong:", future_leak(bad), "repaired:", future_leak(good))
print("hit@1 wrong", hit1(bad), "repaired", hit1(good))
assert "nan" not in bad.output
assert future_leak(bad)[0] > 0.5 and future_leak(bad)[1] < 1e-5
assert future_leak(good)[0] < 1e-4 and future_leak(good)[1] > 0.5
assert hit1(good) > hit1(bad) + 0.2
