import copy

import torch
from torch import nn


class ParameterAverage:
    def __init__(self, model, decay=0.98):
        self.decay, self.updates = decay, 0
        self.model = copy.deepcopy(model).eval().requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        self.updates += 1
        keep = min(self.decay, (1 + self.updates) / (10 + self.updates))
        for average, current in zip(self.model.parameters(), model.parameters()):
            average.lerp_(current, 1 - keep)
        for average, current in zip(self.model.buffers(), model.buffers()):
            average.copy_(current)


class Pendulum(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.lift = nn.Linear(2, hidden, bias=False)
        self.norm = nn.BatchNorm1d(hidden)
        self.force = nn.Linear(hidden, 2)

    def forward(self, state):
        return state + 0.1 * self.force(torch.tanh(self.norm(self.lift(state))))


def transitions(n, gen):
    angle = (torch.rand(n, generator=gen) - 0.5) * 6
    speed = torch.randn(n, generator=gen)
    state = torch.stack([angle, speed], dim=1)
    following = torch.stack([angle + 0.1 * speed, speed - 0.4 * angle.sin()], dim=1)
    return state, following + 0.02 * torch.randn(n, 2, generator=gen)


def main():
    torch.manual_seed(8)
    gen = torch.Generator().manual_seed(8)
    model = Pendulum()
    average = ParameterAverage(model)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=6e-3)
    for step in range(120):
        state, following = transitions(32, gen)
        loss = (model(state) - following).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update(model)
        if step % 40 == 39:
            print(f"step {step + 1} loss {loss.item():.5f}")
    state, following = transitions(500, gen)
    model.eval()
    with torch.no_grad():
        for name, net in (("model", model), ("average", average.model)):
            print(f"{name} {(net(state) - following).square().mean().item():.5f}")


if __name__ == "__main__":
    main()
