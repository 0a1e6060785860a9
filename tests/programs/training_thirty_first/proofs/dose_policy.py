import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

name = "dose_policy"
as_written = run(name)
repaired = run(name, ("        critic_loss.backward()", "        critic_opt.zero_grad()\n        critic_loss.backward()"))

# as written the critic's .grad still holds the actor's gradient when the next critic loss adds to it
leftover = flat_grad(as_written["critic"]).norm()
assert leftover > 0


def gap(result):
    predicted, observed = result["review"](result["actor"], result["critic"], result["clinic"], 2000)
    return predicted - observed


# and the critic's step minimises mse - mean Q, whose minimum lies above the benefit
print(leftover, gap(as_written), gap(repaired))
assert gap(as_written) > 0.25
assert abs(gap(repaired)) < 0.12

# one step by hand: the gradient that the step gets is that of the formula only after the repair
for repair in (False, True):
    torch.manual_seed(0)
    actor, critic = as_written["Actor"](), as_written["Critic"]()
    x, dose, benefit = torch.randn(32, 5), torch.rand(32, 1), torch.rand(32, 1)
    (-critic(x, actor(x)).mean()).backward()
    if repair:
        critic.zero_grad()
    ((critic(x, dose) - benefit) ** 2).mean().backward()
    got = flat_grad(critic)
    formula = torch.cat([g.flatten() for g in torch.autograd.grad(((critic(x, dose) - benefit) ** 2).mean(), list(critic.parameters()))])
    assert (rel(got, formula) < 1e-5) == repair
