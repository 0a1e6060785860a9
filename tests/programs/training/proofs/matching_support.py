import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch

from proofkit import in_optimizer, run

wrong = run("matching_support", capture=["main"]).locals["main"]
net, opt = wrong["net"], wrong["opt"]
for p in net.support_enc.parameters():
    assert in_optimizer(p, opt) and p.grad is None and p not in opt.state
for p in net.query_enc.parameters():
    assert p in opt.state
fixed = run(
    "matching_support",
    (".data.numpy()", ""),
    ("labels = labels.numpy()", "pass"),
    ("np.stack", "torch.stack"),
    ("mean(axis=0)", "mean(dim=0)"),
    ("return torch.from_numpy(means)", "return means"),
    capture=["main"],
).locals["main"]
assert all(p in fixed["opt"].state for p in fixed["net"].support_enc.parameters())
print("proved: matching_support")
