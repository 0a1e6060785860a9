import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

torch.set_num_threads(1)
OLD = 'if "lora_" in k}'
NEW = 'if "lora_" in k or k.startswith("classifier.")}'


def measure(*edits):
    r = run("amber_adapter", *edits, capture=("main",))
    loc = r.locals["main"]
    first, xt, yt = loc["first"], loc["xt"], loc["yt"]
    again, _, _ = r["build"](loc["backbone"].state_dict(), 15, blob=loc["blob"])
    acc = lambda m: (m(xt).argmax(1) == yt).float().mean().item()
    return torch.equal(first(xt), again(xt)), acc(first), acc(again), loc["acc"]


bad, good = measure(), measure((OLD, NEW))
print("reload equal, accuracy saved, reloaded, resumed:", bad, good)
assert good[0] and good[1] == good[2]
assert not bad[0] and bad[2] < bad[1] - 0.3
