import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

torch.set_num_threads(1)
bad = run("gripper_archive")
# repaired: the critic steps on its own loss before the actor's loss is computed
good = run(
    "gripper_archive",
    ("        critic_loss.backward()\n", "        critic_loss.backward()\n        critic_opt.step()\n"),
    ("            soft_update(actor_target, actor, cfg.tau)\n        critic_opt.step()\n",
     "            soft_update(actor_target, actor, cfg.tau)\n"),
)


def gap(r):
    """Mean Q of the policy's own actions minus the return that the policy really gets."""
    cfg, g = r["cfg"], torch.Generator().manual_seed(1)
    n = 400
    state = torch.cat([2 * torch.rand(n, 2, generator=g) - 1, torch.zeros(n, 2)], 1)
    with torch.no_grad():
        q = r["critic"](state, r["actor"](state))[0].mean().item()
    return q - r["rollout"](r["actor"], cfg, torch.Generator().manual_seed(1), n)


print(bad.output, good.output, "over-estimate", gap(bad), gap(good), "return", bad["result"], good["result"])


def critic_gradient(mod, steps):
    r = run("gripper_archive", ("steps: int = 700", f"steps: int = {steps}"), *mod, capture=("learn",))
    return flat_grad(r.locals["learn"]["critic"].q1)


# at the second step the critic is still the same but for one clean update: the gradient left behind before the step
clean = critic_gradient([("actor_loss.backward()", "actor_loss.backward(inputs=list(actor.parameters()))")], 2)
mixed = critic_gradient([], 2)
print("critic gradient at step 2 differs by", rel(mixed, clean))
assert rel(mixed, clean) > 0.1
assert abs(gap(bad)) > 2 * abs(gap(good)) or bad["result"] < good["result"] - 0.1
