import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

OLD = "for n, p in model.named_parameters() if p.requires_grad}"
NEW = OLD + " | {n: b.clone() for n, b in model.named_buffers()}"
bad = run("falcon_adapters")
good = run("falcon_adapters", (OLD, NEW))
print(bad.output, good.output)
for r in (bad, good):
    r["back"] = r["accuracy"](r["deployed"], *r["val"])      # the validation accuracy that was saved as best
    r["held"] = r["accuracy"](r["deployed"], *r["test"])
    print(r["best_acc"], r["back"], r["held"], r["deployed"].norm.running_mean.norm().item())
assert torch.equal(bad["deployed"].norm.running_mean, torch.zeros(24))   # the statistics of a fresh BatchNorm
assert torch.equal(bad["deployed"].norm.running_var, torch.ones(24))
assert good["deployed"].norm.running_mean.norm() > 1
assert good["back"] == good["best_acc"] == bad["best_acc"]
assert bad["back"] < bad["best_acc"] - 0.03 and bad["held"] < good["held"] - 0.03
