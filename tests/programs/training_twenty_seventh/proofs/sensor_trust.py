import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

FIX = ("    loss.backward()\n    trust_opt.step()\n    trust_opt.zero_grad()\n",
       "    trust_opt.zero_grad()\n    loss.backward()\n    trust_opt.step()\n")
# what the trust optimizer sees in its step against the hypergradient of the validation loss alone
PROBE = ("    trust_opt.step()\n", "    seen.append((trust.logits.grad.clone(), torch.autograd.grad("
         "val_loss([p - lr * g for p, g in zip(params, torch.autograd.grad(train_loss(params, trust, *train_batch), params,"
         " create_graph=True))], *val), trust.logits)[0]))\n    trust_opt.step()\n")
sb, sg = [], []
bad = run("sensor_trust", PROBE, inject={"seen": sb})
good = run("sensor_trust", FIX, PROBE, inject={"seen": sg})
eb = sum(rel(a, b) for a, b in sb) / len(sb)
eg = max(rel(a, b) for a, b in sg)
print("error of the hypergradient: as written", eb, "repaired", eg)
print("trust:", bad["weights"].tolist(), good["weights"].tolist())
print("test mse:", bad["test_mse"], good["test_mse"])
assert eg < 1e-4 and eb > 1
assert bad["test_mse"] > 2 * good["test_mse"]
assert good["weights"][:3].sum() > 5 and bad["weights"][:3].sum() < 3
