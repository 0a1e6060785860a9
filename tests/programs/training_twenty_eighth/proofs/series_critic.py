import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

name = "series_critic"
repair = ("torch.autograd.grad(scores.sum(), points)", "torch.autograd.grad(scores.sum(), points, create_graph=True)")


def penalty_gradient(*edits):
    """Gradient of the penalty with respect to the critic, and that of the whole critic loss without the penalty."""
    program = run(name, *edits, as_main=False)
    torch.manual_seed(0)
    critic = program["CurveCritic"]()
    real, fake = program["real_curves"](16), torch.randn(16, program["LENGTH"], 1)
    penalty = ((program["slopes"](critic, real, fake) - 1) ** 2).mean()
    if not penalty.requires_grad:
        return None
    penalty.backward()
    return flat_grad(critic)


assert penalty_gradient() is None
assert penalty_gradient(repair).norm() > 1e-3

# the weight of the penalty makes no difference at all as written, and much after the repair
def trained(weight, *edits):
    program = run(name, *edits, as_main=False)
    torch.manual_seed(11)
    _, critic = program["train"](rounds=12, weight=weight)
    return flat(critic)


assert torch.equal(trained(10.0), trained(0.0))
assert rel(trained(10.0, repair), trained(0.0, repair)) > 0.05


def slope(*edits):
    program = run(name, *edits)
    torch.manual_seed(1)
    critic, generator = program["critic"], program["generator"]
    fake = generator(torch.randn(64, program["LATENT"])).detach()
    return program["slopes"](critic, program["real_curves"](64), fake).mean().item()


wrong, right = slope(), slope(repair)
print("mean slope of the critic:", wrong, right)
assert wrong > 3 and 0.5 < right < 1.5
