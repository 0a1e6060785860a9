import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

bad = run("soft_cart", capture=("main",))
good = run("soft_cart", ("        with torch.no_grad():\n            a2, logp2", "        alpha = log_alpha.exp().detach()\n        with torch.no_grad():\n            a2, logp2"), capture=("main",))
b, g = bad.locals["main"], good.locals["main"]
print("alpha used", b["alpha"].item(), "learned", b["log_alpha"].exp().item(), "| repaired", g["alpha"].item(), g["log_alpha"].exp().item())
print("entropy (target -1):", bad["final_entropy"], "repaired", good["final_entropy"])
assert b["alpha"].item() == 1.0 and b["log_alpha"].exp().item() < 0.3
assert abs(good["final_entropy"] + 1) < 0.5 * abs(bad["final_entropy"] + 1)
