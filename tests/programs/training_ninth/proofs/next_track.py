import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

w = run("next_track")
f = run("next_track", ("std=0.5)\n", "std=0.5)\n            with torch.no_grad():\n                module.weight[module.padding_idx].zero_()\n"))


def pad_effect(ns):
    """How far one history's user vector (before the norm) moves when the same history is padded further."""
    m = ns["model"].eval()
    with torch.no_grad():
        h = torch.tensor([[5, 9, 31]])
        return (m.items(torch.cat([h, torch.zeros(1, 13, dtype=torch.long)], 1)).sum(1) - m.items(h).sum(1)).norm().item()


torch.manual_seed(17)
start = w["SessionEncoder"]().items.weight[0].detach()
assert start.norm() > 1
# the row is only moved by the output side of the tied table: masked logit, so it gets no gradient at all
assert torch.equal(w["model"].items.weight[0].detach(), start)
assert f["model"].items.weight[0].abs().max() == 0
print(pad_effect(w), pad_effect(f), [w[k] for k in ("overall", "short", "long")], [f[k] for k in ("overall", "short", "long")])
assert pad_effect(w) > 10 and pad_effect(f) == 0
assert w["overall"] < f["overall"] - 0.015 and w["short"] < f["short"]
