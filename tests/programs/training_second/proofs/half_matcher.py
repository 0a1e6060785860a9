import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import flat, rel, run

CLIP = "    nn.utils.clip_grad_norm_("
SEE = ("    scaler.step(optimizer)\n", "    scaler.step(optimizer)\n    norms.append(float(sum(p.grad.square().sum() for p in model.parameters()) ** 0.5))\n")
na, nb = [], []
INIT = ("    optimizer = torch.optim.SGD(", "    start = [p.detach().clone() for p in model.parameters()]\n    optimizer = torch.optim.SGD(")
a = run("half_matcher", SEE, INIT, inject={"norms": na}, capture=["main"]).locals["main"]
b = run("half_matcher", SEE, INIT, (CLIP, "    scaler.unscale_(optimizer)\n" + CLIP), inject={"norms": nb}, capture=["main"]).locals["main"]
assert max(na) < 1.1 / 1024 and min(nb) > 0.05, (max(na), min(nb))
move = lambda r: sum((p - q).norm() for p, q in zip(r["model"].parameters(), r["start"])).item()
assert move(a) < 0.1 * move(b), (move(a), move(b))
assert b["loss"] < 0.7 * a["loss"]
print("proved: half_matcher")
