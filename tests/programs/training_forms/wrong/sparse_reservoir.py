import torch
import torch.nn.functional as F
from torch import nn


def sparsify(cell, density):
    with torch.no_grad():
        keep = torch.rand_like(cell.weight_hh) < density
        cell.weight_hh.mul_(keep)
        cell.weight_hh.mul_(0.9 / cell.weight_hh.norm(dim=1).mean().clamp_min(1e-6))


def fresh(module):
    for name, p in module.named_parameters():
        if p.ndim > 1:
            nn.init.orthogonal_(p)
        elif name.startswith("bias"):
            nn.init.zeros_(p)


class Tracker(nn.Module):
    def __init__(self, channels, units, density=0.1):
        super().__init__()
        self.units = units
        self.cell = nn.RNNCell(channels, units)
        self.readout = nn.Linear(units, channels)
        sparsify(self.cell, density)
        fresh(self)

    def forward(self, series):
        h = series.new_zeros(len(series), self.units)
        guesses = []
        for now in series.unbind(1):
            h = self.cell(now, h)
            guesses.append(self.readout(h))
        return torch.stack(guesses, 1)


def oscillators(n, length, channels):
    t = torch.arange(length).float().view(1, length, 1)
    speed = 0.2 + torch.rand(n, 1, channels)
    phase = 6 * torch.rand(n, 1, channels)
    return torch.sin(speed * t + phase) + 0.05 * torch.randn(n, length, channels)


def main():
    torch.manual_seed(6)
    data = oscillators(200, 16, 3)
    model = Tracker(3, 40)
    optimizer = torch.optim.RAdam(model.parameters(), lr=3e-3)
    small = (model.cell.weight_hh.detach().abs() < 1e-3).float().mean()
    print(f"share of tiny recurrent weights {small:.3f}")
    for step in range(120):
        rows = torch.randint(len(data), (32,))
        guess = model(data[rows, :-1])
        loss = F.mse_loss(guess, data[rows, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 30 == 29:
            print(f"step {step + 1} error {loss.item():.5f}")


if __name__ == "__main__":
    main()
