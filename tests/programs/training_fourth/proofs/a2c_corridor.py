import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
bad = run("a2c_corridor")
good = run("a2c_corridor", ("-(log_probs * advantages).mean()", "-(log_probs * advantages.detach()).mean()"))
b, g = sum(bad["gaps"]) / 3, sum(good["gaps"]) / 3
print("value error", b, "repaired", g)
assert b > 2.5 * g and b > 0.1
# the actor loss alone reaches the critic's weights
import torch
net = bad["net"]
for p in net.parameters():
    p.grad = None
lp, v, e, r = bad["rollout"](bad["env"], net, bad["cfg"])
(-(lp * (r - v)).mean()).backward()
assert flat_grad(net.critic).norm() > 1e-3
