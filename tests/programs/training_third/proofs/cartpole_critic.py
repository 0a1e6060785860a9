import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run, flat, flat_grad, rel

fix = ("-(logp * advantage).mean()", "-(logp * advantage.detach()).mean()")
one = ("steps=60", "steps=1")
a, b = run("cartpole_critic", one)["learner"], run("cartpole_critic", fix, one)["learner"]
assert rel(flat_grad(a.critic), flat_grad(b.critic)) > 0.2
assert rel(flat_grad(a.actor), flat_grad(b.actor)) < 1e-5
nov = ("value_weight=0.5", "value_weight=0.0")
c, d = run("cartpole_critic", nov)["learner"], run("cartpole_critic", nov, fix)["learner"]
assert flat_grad(c.critic).norm() > 0.05 and flat_grad(d.critic).norm() == 0
print("proved: cartpole_critic")
