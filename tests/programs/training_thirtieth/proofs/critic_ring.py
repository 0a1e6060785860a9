import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

REPAIR = (
    "        x, gate = ctx.saved_tensors\n",
    "        x, _ = ctx.saved_tensors\n        gate = torch.sigmoid(x)\n",
)


def penalty_gradient(*edits, silu=False):
    ns = run("critic_ring", *edits, as_main=False)
    torch.manual_seed(0)
    game = ns["Game"]()
    critic = game.critic
    if silu:
        for i, m in enumerate(critic):
            if isinstance(m, ns["LeanSwish"]):
                critic[i] = torch.nn.SiLU()
    with torch.no_grad():
        for p in critic.parameters():
            p.mul_(2.0)
    torch.manual_seed(1)
    real = ns["ring"](64)
    fake = torch.randn(64, 2)
    torch.manual_seed(2)
    value = ns["slope_penalty"](critic, real, fake)
    grads = torch.autograd.grad(value, list(critic.parameters()), allow_unused=True)
    return ns, value.detach(), torch.cat([g.flatten() for g in grads if g is not None])


ns, value, grad = penalty_gradient()
fixed, value_r, grad_r = penalty_gradient(REPAIR)
_, value_t, grad_t = penalty_gradient(silu=True)
assert torch.allclose(value, value_t) and torch.allclose(value_r, value_t)
print("penalty gradient off by", rel(grad, grad_t), "repaired", rel(grad_r, grad_t))
assert rel(grad, grad_t) > 0.05 and rel(grad_r, grad_t) < 1e-4

x = torch.randn(10, dtype=torch.float64, requires_grad=True)
f, g = ns["LeanSwishFunction"].apply, fixed["LeanSwishFunction"].apply
assert torch.autograd.gradcheck(f, (x,))
assert not torch.autograd.gradgradcheck(f, (x,), raise_exception=False)
assert torch.autograd.gradgradcheck(g, (x,))
