import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run

FIX = ("                    u = F.normalize(self.weight @ v, dim=0, eps=self.eps)\n",
       "                    u = F.normalize(self.weight @ v, dim=0, eps=self.eps)\n                self.u.copy_(u)\n                u = u.clone()\n")
KEEP = ("for step in range(STEPS):\n", "first_u = [m.u.clone() for m in critic.modules() if hasattr(m, 'u')]\nfor step in range(STEPS):\n")


def report(r):
    layers = [m for m in r["critic"].modules() if hasattr(m, "u")]
    norms = [(torch.linalg.matrix_norm(m.weight / m.sigma(), 2)).item() for m in layers]
    same = [torch.equal(m.u, u) for m, u in zip(layers, r["first_u"])]
    return norms, same


SPY = ("    (-gap).backward()\n", "    (-gap).backward(); gaps.append(gap.item())\n")
ga, gb = [], []
a = run("lipschitz_critic", KEEP, SPY, inject={"gaps": ga})
b = run("lipschitz_critic", KEEP, SPY, FIX, inject={"gaps": gb})
print("largest dual value (may not exceed 2 but for sampling and the lag of one iteration)", max(ga), "repaired", max(gb))
over = [sum(g > 2.5 for g in x) for x in (ga, gb)]
print("steps with a dual value over 2.5:", over)
(na, sa), (nb, sb) = report(a), report(b)
print("spectral norms of the normalised kernels", na, "repaired", nb)
print("u unchanged", sa, "repaired", sb)
print("estimate", a["estimate"], "repaired", b["estimate"], "true", a["SHIFT"])
assert all(sa) and not any(sb[:2])
assert max(na) > 1.5 and max(nb) < 1.05
assert over[0] > 300 and over[1] < 60
assert abs(b["estimate"] - 2) < 0.05 < abs(a["estimate"] - 2)
