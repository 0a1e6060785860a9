"""Thompson sampling with an ensemble of networks, each with a fixed random prior function (Osband et al., 2018).

A sensor is placed at one of many sites each day; a member of the ensemble is drawn and its best site is tried. All
members are evaluated together with `torch.func`; each has its own random share of the data.
"""
import copy

import torch
from torch import nn
from torch.func import functional_call, stack_module_state

torch.manual_seed(13)

MEMBERS, SITES, FEATURES, DAYS, PRIOR_SCALE = 8, 40, 12, 90, 3.0


class Field:
    def __init__(self):
        self.position = torch.linspace(-1, 1, SITES).unsqueeze(1)
        self.features = 2 * torch.exp(-40 * (self.position - torch.linspace(-1, 1, FEATURES)).pow(2))
        x = self.position.squeeze(1)
        self.signal = 1.2 * torch.exp(-30 * (x - 0.6).pow(2)) + 0.7 * torch.exp(-20 * (x + 0.5).pow(2))

    def measure(self, site):
        return self.signal[site] + 0.1 * torch.randn(())


def build():
    return nn.Sequential(nn.Linear(FEATURES, 24), nn.Tanh(), nn.Linear(24, 1))


class Ensemble:
    def __init__(self):
        nets, priors = [build() for _ in range(MEMBERS)], [build() for _ in range(MEMBERS)]
        self.skeleton = copy.deepcopy(nets[0]).to("meta")
        self.weights, _ = stack_module_state(nets)
        self.prior_weights, _ = stack_module_state(priors)
        for weight in self.prior_weights.values():
            weight.requires_grad_(False)
        self.optimizer = torch.optim.Adam(self.weights.values(), lr=1e-2)

    def outputs(self, weights, x):
        def single(member):
            return functional_call(self.skeleton, member, (x,)).squeeze(-1)
        return torch.vmap(single)(weights)

    def predict(self, x):
        return self.outputs(self.weights, x) + PRIOR_SCALE * self.outputs(self.prior_weights, x).detach()

    def fit(self, x, y, shares, steps):
        for _ in range(steps):
            errors = (self.predict(x) - y).pow(2)
            loss = (shares * errors).sum(dim=1).div(shares.sum(dim=1).clamp(min=1)).sum()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return loss.item() / MEMBERS


class Logbook:
    """Preallocated record of the sites tried, what was measured, and which members may see it."""

    def __init__(self):
        self.x, self.y = torch.zeros(DAYS, FEATURES), torch.zeros(DAYS)
        self.shares = torch.zeros(MEMBERS, DAYS)
        self.size = 0

    def write(self, x, y):
        self.x[self.size] = x
        self.y[self.size] = y
        self.shares[:, self.size].bernoulli_(0.6)
        self.size += 1

    def filled(self):
        return self.x[:self.size], self.y[:self.size], self.shares[:, :self.size]


field, ensemble, logbook = Field(), Ensemble(), Logbook()
best, regret = field.signal.max(), 0.0
tries = torch.zeros(SITES, dtype=torch.long)

for day in range(1, DAYS + 1):
    with torch.no_grad():
        member = torch.randint(MEMBERS, ()).item()
        site = ensemble.predict(field.features)[member].argmax().item()
    logbook.write(field.features[site], field.measure(site))
    loss = ensemble.fit(*logbook.filled(), steps=4)
    tries[site] += 1
    regret += (best - field.signal[site]).item()
    if day % 15 == 0:
        with torch.no_grad():
            spread = ensemble.predict(field.features).std(dim=0).mean()
        print(f"day {day:3d}  fit {loss:.4f}  spread {spread.item():.3f}  mean regret {regret / day:.3f}")

favourite = int(tries.argmax())
print(f"most tried site {favourite} at {field.position[favourite].item():+.2f}, "
      f"best site {int(field.signal.argmax())} at {field.position[int(field.signal.argmax())].item():+.2f}")
