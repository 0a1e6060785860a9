import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, flat, flat_grad, rel
N = "arm_soft_actor_critic"
one = ("steps=120", "steps=1")
fix = ("        critic_loss.backward()", "        self.zero_grad()\n        critic_loss.backward()")
bad, good = run(N, one)["agent"], run(N, one, fix)["agent"]
assert rel(flat(bad.policy), flat(good.policy)) < 1e-6
assert rel(flat_grad(bad.critic), flat_grad(good.critic)) > 0.1
assert rel(flat(run(N)["agent"].critic), flat(run(N, fix)["agent"].critic)) > 0.01
print(f"proved: {N}")
