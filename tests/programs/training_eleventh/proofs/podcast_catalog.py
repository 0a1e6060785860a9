import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, in_optimizer

fix = ("        model.extend_catalog(NEW_PER_WEEK)\n",
       "        model.extend_catalog(NEW_PER_WEEK)\n        optimizer = torch.optim.Adam(model.parameters(), lr=0.015, weight_decay=1e-5)\n")
a, b = run("podcast_catalog"), run("podcast_catalog", fix)
print(a.output, b.output)
m = a["model"]
assert in_optimizer(m.user.weight, a["optimizer"])
assert not in_optimizer(m.item.weight, a["optimizer"]) and not in_optimizer(m.bias.weight, a["optimizer"])
assert m.item.weight.grad.norm() > 0
print("largest bias of newest shows", m.bias.weight[a["newest"]:].abs().max().item(), b["model"].bias.weight[b["newest"]:].abs().max().item())
assert m.bias.weight[a["newest"]:].abs().max().item() == 0 < b["model"].bias.weight[b["newest"]:].abs().max().item()
auc = [r["ranking_auc"](r["model"], r["held_out"], r["n_items"], r["newest"]) for r in (a, b)]
print("AUC newest", auc)
assert auc[1] > auc[0] + 0.05
