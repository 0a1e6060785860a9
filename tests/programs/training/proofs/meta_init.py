import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch

from proofkit import flat, run

wrong = run("meta_init", capture=["meta_train"]).locals["meta_train"]
meta, optimizer, learner = wrong["meta"], wrong["optimizer"], wrong["learner"]
assert all(p.grad is None for p in meta.parameters()) and len(optimizer.state) == 0
assert all(p.grad is not None for p in learner.parameters())
start = run("meta_init", ("steps=40", "steps=0"), capture=["meta_train"]).locals["meta_train"]
assert torch.equal(flat(meta), flat(start["meta"]))
fixed = run(
    "meta_init",
    ("learner.load_state_dict(weights)\n    return learner", "return lambda z: functional_call(meta, weights, (z,))"),
    capture=["meta_train"],
).locals["meta_train"]
assert all(p.grad is not None for p in fixed["meta"].parameters()) and len(fixed["optimizer"].state) > 0
print("proved: meta_init")
