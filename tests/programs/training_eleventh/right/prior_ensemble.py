"""Uncertainty of a dose-response curve from an ensemble with randomised priors.

Every member is the sum of a trained network and a network that keeps its random initial weights; the spread of the
members grows away from the data.  All members are evaluated in one call with torch.func, and every member sees its own
bootstrap weights.
"""
import copy

import numpy as np
import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap

SEED = 19
MEMBERS, N_POINTS = 12, 90
STEPS = 600
PRIOR_SCALE = 1.5


def assay(rng):
    dose = np.concatenate([rng.uniform(-3.0, -1.0, N_POINTS // 2), rng.uniform(0.5, 2.0, N_POINTS - N_POINTS // 2)])
    response = np.tanh(1.5 * dose) + 0.4 * np.sin(3 * dose) + 0.08 * rng.normal(size=dose.size)
    return torch.tensor(dose[:, None], dtype=torch.float32), torch.tensor(response, dtype=torch.float32)


class Curve(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(),
                                    nn.Linear(width, 1))

    def forward(self, dose):
        return self.layers(dose).squeeze(-1)


class PriorEnsemble:
    def __init__(self, members):
        learners = [Curve() for _ in range(members)]
        priors = [Curve() for _ in range(members)]
        for prior in priors:
            for layer in prior.layers:
                if isinstance(layer, nn.Linear):
                    nn.init.normal_(layer.weight, std=1.2 / layer.in_features ** 0.5)
                    nn.init.normal_(layer.bias, std=0.5)
        # only the structure of this module is used, the weights come with each call
        self.skeleton = copy.deepcopy(learners[0]).to("meta")
        self.params, self.buffers = stack_module_state(learners)
        self.prior_params, self.prior_buffers = stack_module_state(priors)
        for tensor in self.prior_params.values():
            tensor.requires_grad_(False)

    def parameters(self):
        return list(self.params.values())

    def _call(self, params, buffers, dose):
        def single(p, b, x):
            return functional_call(self.skeleton, (p, b), (x,))

        return vmap(single, in_dims=(0, 0, None))(params, buffers, dose)

    def __call__(self, dose):
        with torch.no_grad():
            prior = self._call(self.prior_params, self.prior_buffers, dose)
        return self._call(self.params, self.buffers, dose) + PRIOR_SCALE * prior


@torch.no_grad()
def spread(ensemble, low, high):
    dose = torch.linspace(low, high, 50)[:, None]
    return ensemble(dose).std(dim=0).mean().item()


def main():
    torch.manual_seed(SEED)
    rng = np.random.default_rng(SEED)
    dose, response = assay(rng)
    counts = rng.multinomial(N_POINTS, np.full(N_POINTS, 1 / N_POINTS), size=MEMBERS)
    bootstrap = torch.tensor(counts, dtype=torch.float32)

    ensemble = PriorEnsemble(MEMBERS)
    optimizer = torch.optim.Adam(ensemble.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=STEPS, eta_min=1e-4)
    for step in range(STEPS):
        errors = (ensemble(dose) - response) ** 2
        # sum over the members: each one gets the gradient of its own mean error
        loss = (bootstrap * errors).mean(dim=1).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if (step + 1) % 120 == 0:
            print(f"step {step + 1}  mean squared error {loss.item() / MEMBERS:.5f}")

    with torch.no_grad():
        mean = ensemble(dose).mean(dim=0)
    print(f"error of the mean {((mean - response) ** 2).mean().sqrt():.4f}")
    print(f"spread at the data {spread(ensemble, -3.0, -1.0):.3f}, in the gap {spread(ensemble, -0.8, 0.3):.3f}, "
          f"beyond {spread(ensemble, 2.5, 4.0):.3f}")


if __name__ == "__main__":
    main()
