import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, in_optimizer, flat
import torch

KEEP = ("        q_net.rejuvenate()\n", "        q_net.rejuvenate(); fresh = torch.cat([p.detach().flatten().clone() for p in q_net.head.parameters()])\n")
FIX = ("        q_net.rejuvenate()\n", "        q_net.rejuvenate(); optimizer = torch.optim.Adam(q_net.parameters(), lr=2e-3)\n")
FIX = (FIX[0], FIX[1].rstrip("\n") + "; fresh = torch.cat([p.detach().flatten().clone() for p in q_net.head.parameters()])\n")
bad, good = run("grid_rejuvenate", KEEP), run("grid_rejuvenate", FIX)
for n, r in (("bad", bad), ("good", good)):
    print(n, "head moved", (flat(r["q_net"].head) - r["fresh"]).norm().item(), "td loss", sum(r["losses"][-200:]) / 200, "wins", r["wins"])
assert torch.equal(flat(bad["q_net"].head), bad["fresh"])
assert not any(in_optimizer(p, bad["optimizer"]) for p in bad["q_net"].head.parameters())
assert (flat(good["q_net"].head) - good["fresh"]).norm() > 0.5


def bellman_error(r):
    s, a, rew, n, d = zip(*r["buffer"])
    import numpy as np
    s, n = torch.from_numpy(np.stack(s)), torch.from_numpy(np.stack(n))
    with torch.no_grad():
        y = torch.tensor(rew) + 0.93 * (1 - torch.tensor(d)) * r["q_net"](n).max(1).values
        return (r["q_net"](s).gather(1, torch.tensor(a)[:, None]).squeeze(1) - y).pow(2).mean().item()


eb, eg = bellman_error(bad), bellman_error(good)
print("bellman error", eb, eg)
assert eb > 1.05 * eg
