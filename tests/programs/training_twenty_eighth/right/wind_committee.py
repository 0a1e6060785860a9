"""An ensemble with randomised prior functions for wind-power regression, all members trained at once with vmap."""
import copy

import torch
import torch.nn as nn
from torch.func import functional_call, stack_module_state, vmap

torch.manual_seed(29)

MEMBERS = 6
STEPS = 250
PRIOR_SCALE = 0.5


def power_curve(speed):
    return torch.sigmoid(1.5 * speed) + 0.2 * torch.sin(3 * speed)


def make_data(size):
    speed = torch.rand(size, 1) * 2.0 - 1.0
    return speed, power_curve(speed).squeeze(1) + 0.05 * torch.randn(size)


def make_member(hidden=24):
    return nn.Sequential(nn.Linear(1, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, 1))


class Committee:
    """Trainable members plus fixed random priors; the stacked tensors are the parameters, the modules only the recipe."""

    def __init__(self, members):
        self.recipe = copy.deepcopy(make_member()).to("meta")
        self.params, self.buffers = stack_module_state([make_member() for _ in range(members)])
        prior, _ = stack_module_state([make_member() for _ in range(members)])
        self.prior = {name: p.detach() * 1.5 for name, p in prior.items()}

    def parameters(self):
        return list(self.params.values())

    def _single(self, params, x):
        return functional_call(self.recipe, params, (x,)).squeeze(-1)

    def __call__(self, x):
        member = vmap(self._single, in_dims=(0, None))(self.params, x)
        with torch.no_grad():
            prior = vmap(self._single, in_dims=(0, None))(self.prior, x)
        return member + PRIOR_SCALE * prior

    def deploy(self, module_list):
        """Writes the trained slices into ordinary modules."""
        with torch.no_grad():
            for i, module in enumerate(module_list):
                for name, p in module.named_parameters():
                    p.copy_(self.params[name][i])


def bootstrap_weights(size):
    counts = torch.multinomial(torch.ones(MEMBERS, size), size, replacement=True)
    weights = torch.zeros(MEMBERS, size)
    return weights.scatter_add_(1, counts, torch.ones(MEMBERS, size))


def train(committee, x, y):
    weights = bootstrap_weights(len(y))
    optimizer = torch.optim.AdamW(committee.parameters(), lr=1e-2, weight_decay=1e-4)
    history = []
    for step in range(STEPS):
        residual = committee(x) - y.unsqueeze(0)
        per_member = (weights * residual.pow(2)).mean(dim=1)
        optimizer.zero_grad()
        per_member.sum().backward()
        optimizer.step()
        history.append(per_member.detach().mean().item())
        if step % 50 == 49:
            print(f"step {step + 1:3d}  mean loss {history[-1]:.4f}")
    return history


def main():
    x, y = make_data(120)
    committee = Committee(MEMBERS)
    start = [p.detach().clone() for p in committee.parameters()]
    history = train(committee, x, y)
    with torch.no_grad():
        inside = committee(torch.linspace(-0.9, 0.9, 50).unsqueeze(1))
        outside = committee(torch.linspace(2.5, 3.5, 50).unsqueeze(1))
    truth = power_curve(torch.linspace(-0.9, 0.9, 50))
    print(f"error of the mean {(inside.mean(0) - truth).pow(2).mean().sqrt().item():.3f}")
    print(f"spread inside {inside.std(0).mean().item():.3f}, outside {outside.std(0).mean().item():.3f}")

    modules = nn.ModuleList(make_member() for _ in range(MEMBERS))
    committee.deploy(modules)
    with torch.no_grad():
        direct = torch.stack([m(x).squeeze(1) for m in modules])
        gap = (direct - vmap(committee._single, in_dims=(0, None))(committee.params, x)).abs().max().item()
    print(f"largest difference of the deployed members {gap:.1e}")
    return committee, start, history, inside, outside, gap


if __name__ == "__main__":
    committee, start, history, inside, outside, gap = main()
