"""Learns a dosing policy from simulated patients with an actor and a critic.

Each visit is one decision: the actor proposes a dose for the patient's measurements, the
critic predicts the benefit of a dose.  Visits are kept in a replay memory; the critic is fitted
to the observed benefits and the actor follows the critic's slope with respect to the dose.
"""
import torch
import torch.nn.functional as F
from torch import nn

MEASUREMENTS = 5
VISITS, BATCH = 190, 64


class Clinic:
    """Benefit falls with the squared distance between the dose and the patient's best dose."""

    def __init__(self, generator):
        self.generator = generator
        self.sensitivity = torch.randn(MEASUREMENTS, generator=generator)

    def patients(self, n):
        return torch.randn(n, MEASUREMENTS, generator=self.generator)

    def best_dose(self, x):
        return torch.tanh(0.6 * (x @ self.sensitivity)).unsqueeze(1)

    def benefit(self, x, dose):
        noise = 0.1 * torch.randn(len(x), 1, generator=self.generator)
        return 1.0 - 2.0 * (dose - self.best_dose(x)).pow(2) + noise


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(MEASUREMENTS, 32), nn.ReLU(), nn.Linear(32, 1), nn.Tanh())

    def forward(self, x):
        return self.net(x)


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(MEASUREMENTS + 1, 48), nn.ReLU(),
            nn.Linear(48, 48), nn.ReLU(),
            nn.Linear(48, 1),
        )

    def forward(self, x, dose):
        return self.net(torch.cat([x, dose], dim=1))


class ReplayMemory:
    def __init__(self, capacity):
        self.capacity = capacity
        self.visits = []

    def add(self, x, dose, benefit):
        self.visits.extend(zip(x, dose, benefit))
        self.visits = self.visits[-self.capacity:]

    def sample(self, n):
        pick = torch.randint(0, len(self.visits), (n,)).tolist()
        columns = zip(*(self.visits[i] for i in pick))
        return tuple(torch.stack(column) for column in columns)


def propose(actor, x, spread):
    with torch.no_grad():
        dose = actor(x)
        return (dose + spread * torch.randn_like(dose)).clamp(-1, 1)


def review(actor, critic, clinic, n=400):
    x = clinic.patients(n)
    with torch.no_grad():
        dose = actor(x)
        return critic(x, dose).mean().item(), clinic.benefit(x, dose).mean().item()


def main():
    torch.manual_seed(5)
    clinic = Clinic(torch.Generator().manual_seed(50))
    actor, critic = Actor(), Critic()
    actor_opt = torch.optim.Adam(actor.parameters(), lr=3e-3)
    critic_opt = torch.optim.Adam(critic.parameters(), lr=5e-3)
    memory = ReplayMemory(2000)
    x = clinic.patients(256)
    dose = 2 * torch.rand(256, 1) - 1
    memory.add(x, dose, clinic.benefit(x, dose))

    for visit in range(VISITS):
        x = clinic.patients(16)
        dose = propose(actor, x, spread=0.3)
        memory.add(x, dose, clinic.benefit(x, dose))

        x, dose, benefit = memory.sample(BATCH)
        critic_loss = F.mse_loss(critic(x, dose), benefit)
        critic_loss.backward()
        critic_opt.step()
        critic_opt.zero_grad()

        actor_loss = -critic(x, actor(x)).mean()
        actor_loss.backward()
        actor_opt.step()
        actor_opt.zero_grad()

        if (visit + 1) % 38 == 0:
            predicted, observed = review(actor, critic, clinic)
            print(f"visit {visit + 1:3d}  critic loss {critic_loss.item():.4f}  "
                  f"predicted benefit {predicted:.3f}  observed benefit {observed:.3f}")
    return actor, critic, clinic


if __name__ == "__main__":
    actor, critic, clinic = main()
