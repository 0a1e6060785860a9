import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

NAME = "room_heating"
FIX = ("distribution.log_prob(actions)", "distribution.log_prob(actions).squeeze(-1)")

# the gradient that reaches the network of the mean, on the same rollout
def mean_gradient(*edits):
    program = run(NAME, *edits, as_main=False)
    torch.manual_seed(0)
    controller = program["Controller"]()
    obs, act, rew = program["rollout"](program["HeatedRooms"](24), controller)
    ret = program["discounted_returns"](rew).flatten()
    adv = (ret - ret.mean()) / (ret.std() + 1e-8)
    obs, act = obs.flatten(0, 1), act.flatten(0, 1)
    program["policy_loss"](controller, obs, act, adv).backward()
    grad = flat_grad(controller.body)
    # the formula: -mean_i A_i grad log pi(a_i | s_i)
    logp = controller(obs).log_prob(act)[:, 0]
    assert logp.shape == adv.shape
    ref = torch.cat([g.flatten() for g in torch.autograd.grad(-(logp * adv).mean(), list(controller.body.parameters()))])
    return grad, ref

grad, ref = mean_gradient()
fixed, ref2 = mean_gradient(FIX)
print("as written", grad.norm().item(), "formula", ref.norm().item(), "repaired", fixed.norm().item())
assert grad.norm() < 1e-4 * ref.norm() and rel(fixed, ref2) < 1e-4

a = run(NAME, capture=("main",)).locals["main"]["history"]
b = run(NAME, FIX, capture=("main",)).locals["main"]["history"]
first_a, last_a, last_b = sum(a[:5]) / 5, sum(a[-10:]) / 10, sum(b[-10:]) / 10
print(first_a, last_a, last_b)
assert last_b > -0.35 and last_a < 2 * last_b
