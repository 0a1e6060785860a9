import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

NAME = "pendulum_actor_critic"
spy = ("    critic_loss.backward()\n",
       "    import torch as t\n"
       "    pure = t.cat([g.flatten() for g in t.autograd.grad(critic_loss, list(critic.parameters()), retain_graph=True)])\n"
       "    critic_loss.backward()\n"
       "    held = t.cat([p.grad.flatten() for p in critic.parameters()])\n"
       "    probe.append(((held - pure).norm() / pure.norm()).item())\n")
fix = ("    critic_loss.backward()\n", "    critic_optimizer.zero_grad()\n    critic_loss.backward()\n")
probe = []
run(NAME, spy, ("range(40)", "range(5)"), inject={"probe": probe})
clean = []
run(NAME, spy, fix, ("range(40)", "range(5)"), inject={"probe": clean})
print("foreign part of the critic's gradient, median", sorted(probe)[len(probe) // 2], sorted(clean)[len(clean) // 2])
assert sorted(probe[1:])[len(probe) // 2] > 0.3 and max(clean) < 1e-3
bad, good = run(NAME), run(NAME, fix)
print("return, value estimate:", bad["earned"], bad["promised"], "repaired:", good["earned"], good["promised"])
assert good["earned"] > bad["earned"] + 3
assert abs(good["promised"] - good["earned"]) < abs(bad["promised"] - bad["earned"])
