import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import flat, flat_grad, in_optimizer, rel, run

NAME = "corridor_ppo"

def policy_gradient(*edits):
    r = run(NAME, *edits, as_main=False)
    torch.manual_seed(0)
    env = r["Corridor"](16, 12, torch.Generator().manual_seed(1))
    actor, critic = r["mlp"](2, 3), r["mlp"](2, 1)
    batch = r["collect"](env, actor)

    class Recorder:
        def zero_grad(self):
            pass

        def step(self):
            pass

    r["update"](actor, critic, Recorder(), batch, entropy_weight=0.0)
    return flat_grad(actor).norm().item()


assert policy_gradient() < 1e-6
assert policy_gradient(("dist.log_prob(action))", "dist.log_prob(action).detach())")) > 1e-2

print(f"proved: {NAME}")
