import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, flat, rel
import torch

w = run("twin_reservoir")
f = run("twin_reservoir", ("self.critic_b = copy.deepcopy(self.critic_a)", "self.critic_b = Critic()"))


def gap(ns):
    agent = ns["agent"]
    o, a = (torch.cat([m[i] for m in ns["memory"][-20:]]) for i in (0, 1))
    with torch.no_grad():
        return (agent.critic_a(o, a) - agent.critic_b(o, a)).abs().mean().item()


a, b = w["agent"].critic_a, w["agent"].critic_b
assert all(p is not q and p.data_ptr() != q.data_ptr() for p, q in zip(a.parameters(), b.parameters()))
print(gap(w), gap(f), rel(flat(a), flat(b)), w["value"], f["value"])
assert torch.equal(flat(a), flat(b)) and gap(w) == 0
assert torch.equal(flat(w["agent"].target_a), flat(w["agent"].target_b))
assert gap(f) > 0.02 and f["value"] < w["value"]
