import torch
from torch import nn


class Scaler(nn.Module):
    def __init__(self, sample):
        super().__init__()
        self.register_buffer("low", sample.mean(0))
        self.register_buffer("span", sample.std(0))

    def forward(self, s):
        s = s - self.low
        s = s / self.span
        return s


class Dynamics(nn.Module):
    def __init__(self, sample, controls, width=32):
        super().__init__()
        self.scale = Scaler(sample)
        self.inner = nn.Sequential(nn.Linear(sample.size(1) + controls, width), nn.Mish(),
                                   nn.Linear(width, sample.size(1)))

    def forward(self, state, control):
        change = self.inner(torch.cat([self.scale(state), control], 1))
        return state + 0.1 * change


class Arena:
    def __init__(self, n):
        place = 20 + 5 * torch.randn(n, 2)
        speed = 2 * torch.randn(n, 2)
        self.state = torch.cat([place, speed], 1)
        self.control = torch.randn(n, 2)
        pull = -0.1 * (place - 20) + self.control
        self.after = torch.cat([place + 0.1 * speed, speed + 0.1 * pull], 1)

    def minibatches(self, size):
        for at in torch.randperm(len(self.state)).split(size):
            yield self.state[at], self.control[at], self.after[at]


def fit(model, arena, epochs):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(epochs):
        total, count = 0.0, 0
        for state, control, after in arena.minibatches(100):
            gap = (model(state, control) - after).square().sum(1).mean()
            optimizer.zero_grad()
            gap.backward()
            optimizer.step()
            total, count = total + gap.item(), count + 1
        print(f"epoch {epoch} one-step error {total / count:.5f}")


if __name__ == "__main__":
    torch.manual_seed(61)
    arena = Arena(2000)
    fit(Dynamics(arena.state, 2), arena, 10)
