"""State of a valve from vibration features with few labels, with an averaged teacher (Tarvainen and Valpola, 2017)."""
import copy
import math

import torch
from torch import nn
from torch.nn import functional as F

FEATURES = 10
STATES = 3


class Valves:
    """Each state is a curved band in feature space."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)
        layout = torch.Generator().manual_seed(61)
        self.basis = torch.randn(3, FEATURES, generator=layout)

    def batch(self, count):
        state = torch.randint(STATES, (count,), generator=self.generator)
        along = 2.0 * torch.rand(count, generator=self.generator) - 1.0
        band = torch.stack([along * 2.0, along.pow(2) * 1.5 + state - 1.0, torch.sin(3.0 * along) + 0.5 * state], dim=1)
        noise = 0.25 * torch.randn(count, FEATURES, generator=self.generator)
        return band @ self.basis + noise, state


class StateNet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.register_buffer("center", torch.zeros(FEATURES))
        self.register_buffer("spread", torch.ones(FEATURES))
        self.first = nn.Linear(FEATURES, width)
        self.second = nn.Linear(width, width)
        self.drop = nn.Dropout(0.2)
        self.out = nn.Linear(width, STATES)

    def measure(self, x):
        self.center.copy_(x.mean(dim=0))
        self.spread.copy_(x.std(dim=0))
        return self

    def forward(self, x):
        x = (x - self.center) / self.spread
        return self.out(self.drop(F.relu(self.second(F.relu(self.first(x))))))


class MeanTeacher:
    def __init__(self, student, ramp_steps, decay=0.98, largest_weight=6.0):
        self.student = student
        self.teacher = copy.deepcopy(student)
        for p in self.teacher.parameters():
            p.requires_grad_(False)
        self.ramp_steps = ramp_steps
        self.decay = decay
        self.largest_weight = largest_weight

    def weight(self, step):
        part = min(step / self.ramp_steps, 1.0)
        return self.largest_weight * math.exp(-5.0 * (1.0 - part) ** 2)

    def consistency(self, x):
        """The student follows the teacher's view of the same signals; both see their own noise and dropout."""
        with torch.no_grad():
            wanted = self.teacher(x + 0.5 * torch.randn_like(x)).softmax(dim=1)
        given = self.student(x + 0.5 * torch.randn_like(x)).softmax(dim=1)
        return F.mse_loss(given, wanted)

    @torch.no_grad()
    def follow(self, step):
        decay = min(1.0 - 1.0 / (step + 1), self.decay)
        for t, s in zip(self.teacher.parameters(), self.student.parameters()):
            t.data.mul_(decay).add_(s.data, alpha=1.0 - decay)


@torch.no_grad()
def accuracy(model):
    was_training = model.training
    model.eval()
    x, state = Valves(seed=80).batch(600)
    share = (model(x).argmax(dim=1) == state).float().mean().item()
    model.train(was_training)
    return share


def main():
    torch.manual_seed(38)
    valves = Valves(seed=4)
    labelled, states = valves.batch(15)
    unlabelled, _ = valves.batch(1000)
    student = StateNet().measure(unlabelled)
    pair = MeanTeacher(student, ramp_steps=120)
    optimizer = torch.optim.Adam(student.parameters(), lr=3e-3)
    for step in range(300):
        picks = torch.randint(len(unlabelled), (96,))
        known = F.cross_entropy(student(labelled), states)
        agreed = pair.consistency(unlabelled[picks])
        loss = known + pair.weight(step) * agreed
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        pair.follow(step)
        if (step + 1) % 75 == 0:
            print(
                f"step {step + 1:4d}  known {known.item():.4f}  agreed {agreed.item():.5f}"
                f"  student {accuracy(student):.3f}  teacher {accuracy(pair.teacher):.3f}"
            )
    return pair


if __name__ == "__main__":
    pair = main()
