"""Imitation by data aggregation (DAgger, Ross et al., 2011): the learner drives, the expert labels what it meets.

The learner has batch normalisation and dropout; an average of its weights drives at evaluation.
"""
import contextlib
import copy

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(9)

CARS, STEPS, ROUNDS = 32, 15, 6


@contextlib.contextmanager
def evaluating(net):
    was_training = net.training
    net.eval()
    try:
        with torch.no_grad():
            yield net
    finally:
        net.train(was_training)


class Road:
    """Offset from the lane, heading, speed and curvature, in raw units of very different size."""

    scale = torch.tensor([2.0, 0.2, 20.0, 0.01])

    def reset(self):
        self.state = torch.randn(CARS, 4) * self.scale + torch.tensor([0.0, 0.0, 60.0, 0.0])
        return self.state

    def step(self, steering):
        offset, heading, speed, curvature = self.state.unbind(1)
        heading = 0.9 * heading + 0.2 * steering.squeeze(1) - 4 * curvature
        offset = offset + 0.02 * speed * heading
        curvature = 0.9 * curvature + 0.002 * torch.randn(CARS)
        self.state = torch.stack([offset, heading, speed, curvature], dim=1)
        return self.state, offset.abs().mean().item()


class Expert(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("gain", torch.tensor([[-0.6, -2.0, 0.0, 20.0]]))

    def forward(self, state):
        return torch.tanh(state @ self.gain.T)


class Learner(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.net = nn.Sequential(
            nn.BatchNorm1d(4, affine=False), nn.Linear(4, hidden, bias=False), nn.BatchNorm1d(hidden), nn.ReLU(),
            nn.Dropout(0.1), nn.Linear(hidden, 1), nn.Tanh())

    def forward(self, state):
        return self.net(state)


class Average:
    """Moving average of the weights; statistics of the normalisation are taken over as they are."""

    def __init__(self, net, decay=0.95):
        self.net, self.decay = copy.deepcopy(net).eval().requires_grad_(False), decay

    @torch.no_grad()
    def update(self, net):
        for slow, fast in zip(self.net.parameters(), net.parameters()):
            slow.mul_(self.decay).add_(fast, alpha=1 - self.decay)
        for slow, fast in zip(self.net.buffers(), net.buffers()):
            slow.copy_(fast)


def drive(road, learner, expert, share):
    """A trip in which each car follows the expert with the given probability; labels are always the expert's."""
    state, visited, labels = road.reset(), [], []
    with evaluating(learner):
        for _ in range(STEPS):
            label = expert(state)
            by_expert = torch.rand(CARS, 1) < share
            visited.append(state)
            labels.append(label)
            state, _ = road.step(torch.where(by_expert, label, learner(state)))
    return torch.cat(visited), torch.cat(labels)


def deviation(road, policy):
    state, total = road.reset(), 0.0
    with evaluating(policy):
        for _ in range(STEPS):
            state, offset = road.step(policy(state))
            total += offset / STEPS
    return total


road, expert, learner = Road(), Expert().eval(), Learner()
average = Average(learner)
optimizer = torch.optim.Adam(learner.parameters(), lr=1e-2)
states, labels = torch.empty(0, 4), torch.empty(0, 1)

print(f"deviation before training {deviation(road, average.net):.3f}")
for round_ in range(ROUNDS):
    new_states, new_labels = drive(road, learner, expert, share=0.5 ** round_)
    states, labels = torch.cat([states, new_states]), torch.cat([labels, new_labels])
    for _ in range(50):
        batch = torch.randint(len(states), (64,))
        loss = F.mse_loss(learner(states[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update(learner)
    print(f"round {round_ + 1}  states {len(states):5d}  loss {loss.item():.4f}  "
          f"deviation {deviation(road, average.net):.3f}")
print(f"deviation of the expert {deviation(road, expert):.3f}")
