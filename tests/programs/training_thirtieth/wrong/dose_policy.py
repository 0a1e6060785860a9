"""Learns a dosing policy from logged treatments: a critic estimates the outcome, an actor looks for the best dose."""
import torch
import torch.nn as nn
import torch.nn.functional as F

PATIENT = 8
STEPS = 240
BATCH = 128


def best_dose(patients):
    return torch.tanh(0.8 * patients[:, 0] - 0.5 * patients[:, 1] * patients[:, 2])


def outcome(patients, doses):
    return 1.0 - (doses - best_dose(patients)) ** 2 + 0.2 * torch.sin(patients[:, 3])


class Log:
    """Treatments given in the past, with doses chosen almost at random."""

    def __init__(self, n):
        self.patients = torch.randn(n, PATIENT)
        self.doses = 2 * torch.rand(n) - 1
        self.outcomes = outcome(self.patients, self.doses) + 0.1 * torch.randn(n)

    def sample(self, size):
        rows = torch.randint(0, len(self.doses), (size,))
        return self.patients[rows], self.doses[rows], self.outcomes[rows]


class Actor(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(PATIENT, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1)
        )

    def forward(self, patients):
        return torch.tanh(self.net(patients)).squeeze(-1)


class Critic(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(PATIENT + 1, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1)
        )

    def forward(self, patients, doses):
        return self.net(torch.cat([patients, doses.unsqueeze(-1)], dim=-1)).squeeze(-1)


class Agent:
    def __init__(self, lr_actor=1e-3, lr_critic=3e-3):
        self.actor = Actor()
        self.critic = Critic()
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), lr=lr_actor)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), lr=lr_critic)

    def update(self, patients, doses, outcomes):
        self.actor_optimizer.zero_grad()
        self.critic_optimizer.zero_grad()

        actor_loss = -self.critic(patients, self.actor(patients)).mean()
        actor_loss.backward()
        self.actor_optimizer.step()

        critic_loss = F.mse_loss(self.critic(patients, doses), outcomes)
        critic_loss.backward()
        self.critic_optimizer.step()
        return actor_loss.item(), critic_loss.item()

    @torch.no_grad()
    def report(self, patients):
        doses = self.actor(patients)
        expected = self.critic(patients, doses).mean().item()
        achieved = outcome(patients, doses).mean().item()
        return expected, achieved


def main():
    torch.manual_seed(3)
    log = Log(3000)
    patients = torch.randn(500, PATIENT)
    agent = Agent()
    for step in range(1, STEPS + 1):
        actor_loss, critic_loss = agent.update(*log.sample(BATCH))
        if step % 80 == 0:
            expected, achieved = agent.report(patients)
            print(
                f"step {step:4d}  critic {critic_loss:.4f}  actor {actor_loss:.4f}  "
                f"expected outcome {expected:.3f}  achieved {achieved:.3f}"
            )
    expected, achieved = agent.report(patients)
    return agent, expected, achieved


if __name__ == "__main__":
    agent, expected, achieved = main()
