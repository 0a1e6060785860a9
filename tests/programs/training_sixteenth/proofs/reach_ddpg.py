import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

watch = ("    critic_loss.backward()\n", "    left.append(sum(p.grad.norm().item() for p in critic.parameters() if p.grad is not None))\n    critic_loss.backward()\n")
wrong = run("reach_ddpg", watch, inject={"left": []})
repair = ("    critic_loss.backward()\n", "    critic_opt.zero_grad()\n    critic_loss.backward()\n")
fixed = run("reach_ddpg", repair)
print("gradient left in the critic before its backward", wrong["left"][:4], "later", wrong["left"][-2:])
print("mean q", wrong["mean_q"], "repaired", fixed["mean_q"])
print("distance", wrong["distance"], "repaired", fixed["distance"])
assert min(wrong["left"][1:]) > 0.01
assert abs(wrong["mean_q"] - fixed["mean_q"]) > 1.0  # overestimates
assert fixed["distance"] < 0.7 * wrong["distance"]
