import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

fix = (("return top.values", "return pool.gather(1, top.indices)"),
       ("positive = self.model(users, items[:, None])", "positive = self.model(users, items[:, None]); negative = self.model(users, negative)"))
wrong, right = run("user_vectors"), run("user_vectors", *fix)
score = lambda r: r["recall"](r["trainer"].model, r["trainer"].seen, r["trainer"].held_out)
a, b = score(wrong), score(right)
t = wrong["trainer"]
users = torch.arange(8)
neg = t.miner(t.model, users)
print("recall@20 wrong", a, "repaired", b, "negative scores require grad:", neg.requires_grad)
grads = []
for r in (wrong, right):
    t = r["trainer"]
    t.opt.zero_grad(); t.step()
    w, g = t.model.item.weight, t.model.item.weight.grad
    grads.append((g.norm(dim=1) > 1e-9).sum().item())
mean_cos = []
for r in (wrong, right):
    v = torch.nn.functional.normalize(r["trainer"].model.item.weight.detach(), dim=1)
    mean_cos.append((v @ v.T).mean().item())
print("items with gradient in a step", grads, "mean cosine between items", mean_cos)
assert not neg.requires_grad and mean_cos[0] > 2 * mean_cos[1]
assert b > 1.2 * a
