import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
import torch
w = run("keyword_spotter")
r = run("keyword_spotter", ("use_reentrant=True", "use_reentrant=False"))
enc = w["spotter"].encoder
assert all(p.grad is None for b in (enc[0], enc[1]) for p in b.parameters())
assert all(p.grad is not None for b in (enc[2], enc[3]) for p in b.parameters())
assert all(p.grad is not None for p in r["spotter"].parameters())
start = run("keyword_spotter", ("train(spotter, *train_set)", "pass"))["spotter"].encoder
assert torch.equal(flat(enc[:2]), flat(start[:2])) and not torch.equal(flat(enc[2:]), flat(start[2:]))
print("test accuracy", w["test_accuracy"], r["test_accuracy"])
assert r["test_accuracy"] > w["test_accuracy"] + 0.05
