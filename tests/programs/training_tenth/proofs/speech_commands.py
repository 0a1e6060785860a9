import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

FIX = (("    penalty.attach(model)\n    seen", "    seen"),
       ("train_set, test_set =", "penalty.attach(model)\ntrain_set, test_set ="))
wrong, right = run("speech_commands"), run("speech_commands", *FIX)
sums = {}
for name, r in (("wrong", wrong), ("right", right)):
    m = r["model"]
    sums[name] = [len(b.act._forward_hooks) for b in m.blocks]
assert sums == {"wrong": [16] * 3, "right": [1] * 3}, sums
for r, n in ((wrong, 48), (right, 3)):
    m, pen = r["model"], r["penalty"]
    m.train()
    m(r["test_set"][0][:32])
    assert len(pen.terms) == n
    distinct = {round(t.item(), 7) for t in pen.terms}
    assert len(distinct) == 3  # three values, each counted n / 3 times
    r["activity"] = sum(distinct)
    r["share"] = pen.pop().item() / (pen.weight * sum(distinct))
print(wrong["share"], right["share"], wrong["history"][-1], right["history"][-1])
assert abs(wrong["share"] - 16) < 1e-3 and abs(right["share"] - 1) < 1e-3
print(wrong["activity"], right["activity"])
assert wrong["history"][-1] > right["history"][-1]  # the task pays for it
assert wrong["activity"] < 0.93 * right["activity"]  # the layers are pressed down more than asked for
