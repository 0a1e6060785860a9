import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, in_optimizer

r = run("caption_retrieval")
fixed = run("caption_retrieval", ("min(self.log_scale.exp().item(), MAX_SCALE)", "self.log_scale.exp().clamp(max=MAX_SCALE)"))
m, f = r["model"], fixed["model"]
print(in_optimizer(m.log_scale, r["optimizer"]), m.log_scale.grad, m.log_scale.item(), f.log_scale.item())
print("recall", r["recall"], fixed["recall"])
assert in_optimizer(m.log_scale, r["optimizer"]) and m.log_scale.requires_grad
assert m.log_scale.grad is None and abs(m.log_scale.item() - 0.7) < 1e-6
assert f.log_scale.item() > 1.0
assert fixed["recall"] > r["recall"] + 0.02
