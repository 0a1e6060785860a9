"""Dose finding as a contextual bandit: a bootstrapped ensemble with randomized priors (Osband and others, 2018)."""
from collections import deque

import torch
import torch.nn as nn


class Patients:
    """The response to a dose is a bump whose place depends on the patient."""

    def __init__(self, dim, doses):
        self.weights = torch.randn(dim) / dim ** 0.5
        self.doses = torch.linspace(-1, 1, doses)

    def arrive(self, n):
        return torch.randn(n, len(self.weights))

    def mean_response(self, x):
        best = torch.tanh(1.5 * x @ self.weights).unsqueeze(1)
        return torch.exp(-4 * (self.doses - best).pow(2))

    def respond(self, x, dose):
        mean = self.mean_response(x)
        chosen = mean.gather(1, dose.unsqueeze(1)).squeeze(1)
        return chosen + 0.1 * torch.randn(len(x)), mean.max(1).values - chosen


class EnsembleLinear(nn.Module):
    """Linear maps of all members at once: inputs (members, batch, in)."""

    def __init__(self, members, inputs, outputs, gain=1.0):
        super().__init__()
        self.weight = nn.Parameter(gain * torch.randn(members, inputs, outputs) / inputs ** 0.5)
        self.bias = nn.Parameter(torch.zeros(members, 1, outputs))

    def forward(self, x):
        return torch.baddbmm(self.bias, x, self.weight)


def ensemble_net(members, inputs, hidden, outputs, last_gain):
    return nn.Sequential(EnsembleLinear(members, inputs, hidden), nn.ReLU(),
                         EnsembleLinear(members, hidden, hidden), nn.ReLU(),
                         EnsembleLinear(members, hidden, outputs, gain=last_gain))


class PriorEnsemble(nn.Module):
    def __init__(self, members, inputs, outputs, hidden=24, prior_scale=0.5):
        super().__init__()
        self.members, self.prior_scale = members, prior_scale
        self.trainable = ensemble_net(members, inputs, hidden, outputs, last_gain=0.0)
        self.prior = ensemble_net(members, inputs, hidden, outputs, last_gain=1.0)
        self.prior.requires_grad_(False)

    def forward(self, x):
        x = x.expand(self.members, -1, -1)
        with torch.no_grad():
            prior = self.prior(x)
        return self.trainable(x) + self.prior_scale * prior


class Agent:
    def __init__(self, dim, doses, members=8, lr=5e-3):
        self.model = PriorEnsemble(members, dim, doses)
        self.optimizer = torch.optim.AdamW(self.model.trainable.parameters(), lr=lr, weight_decay=1e-4)
        self.x, self.dose, self.y, self.mask = (deque(maxlen=60) for _ in range(4))

    @torch.no_grad()
    def choose(self, x):
        values = self.model(x)
        member = torch.randint(self.model.members, (len(x),))
        return values[member, torch.arange(len(x))].argmax(1)

    def store(self, x, dose, y):
        self.x.append(x)
        self.dose.append(dose)
        self.y.append(y)
        self.mask.append(2.0 * torch.bernoulli(torch.full((len(x), self.model.members), 0.5)))

    def fit(self, steps=3, batch=96):
        x, dose, y, mask = (torch.cat(list(part)) for part in (self.x, self.dose, self.y, self.mask))
        for _ in range(steps):
            idx = torch.randint(len(x), (batch,))
            values = self.model(x[idx])
            index = dose[idx].view(1, -1, 1).expand(self.model.members, -1, 1)
            error = values.gather(2, index).squeeze(2) - y[idx]
            loss = (mask[idx].T * error.pow(2)).mean(1).sum()
            self.optimizer.zero_grad(set_to_none=False)
            loss.backward()
            self.optimizer.step()
        return loss.item() / self.model.members


def main(rounds=100, patients=24, dim=4, doses=7):
    torch.manual_seed(13)
    world, agent = Patients(dim, doses), Agent(dim, doses)
    regret = []
    for t in range(rounds):
        x = world.arrive(patients)
        dose = agent.choose(x)
        y, gap = world.respond(x, dose)
        agent.store(x, dose, y)
        loss = agent.fit()
        regret.append(gap.mean().item())
        if t % 20 == 19:
            with torch.no_grad():
                spread = agent.model(world.arrive(64)).std(0).mean().item()
            print(f"round {t + 1:4d}  regret {sum(regret[-20:]) / 20:.3f}  loss {loss:.4f}  spread {spread:.3f}")
    return agent, regret


if __name__ == "__main__":
    agent, regret = main()
    print("total regret", round(sum(regret), 2))
