import torch
from torch import nn


class GainNet(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.cell = nn.GRUCell(2, width)
        self.gain = nn.Linear(width, 2)

    def forward(self, innovation, estimate, hidden):
        hidden = self.cell(torch.stack([innovation, estimate[:, 1]], -1), hidden)
        return torch.sigmoid(self.gain(hidden)), hidden


class Running:
    def __init__(self):
        self.total, self.n = 0.0, 0

    def add(self, value):
        self.total += float(value)
        self.n += 1

    def mean(self):
        return self.total / self.n


class FilterTrainer:
    def __init__(self, net, window=10, lr=5e-3):
        self.net, self.window = net, window
        self.opt = torch.optim.Adam(net.parameters(), lr=lr)

    def advance(self, estimate, reading, hidden):
        predicted = torch.stack([estimate[:, 0] + 0.1 * estimate[:, 1], estimate[:, 1]], -1)
        innovation = reading - predicted[:, 0]
        gain, hidden = self.net(innovation, predicted, hidden)
        return predicted + gain * innovation[:, None], hidden

    def update(self, total):
        self.opt.zero_grad()
        total.backward()
        nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        self.opt.step()

    def track(self, readings, truth, meter):
        estimate = torch.stack([readings[:, 0], torch.zeros(len(readings))], -1)
        hidden = torch.zeros(len(readings), self.net.cell.hidden_size)
        total = 0.0
        for t in range(1, readings.shape[1]):
            estimate, hidden = self.advance(estimate, readings[:, t], hidden)
            error = (estimate - truth[:, t]).pow(2).mean()
            total = total + error / self.window
            meter.add(error.detach())
            if t % self.window == 0:
                self.update(total)
                estimate, hidden, total = estimate.detach(), hidden.detach(), 0.0


def flights(n, steps, g):
    speed = torch.randn(n, 1, generator=g) + torch.cumsum(0.1 * torch.randn(n, steps, generator=g), 1)
    place = torch.cumsum(0.1 * speed, 1)
    return place + 0.3 * torch.randn(n, steps, generator=g), torch.stack([place, speed], -1)


if __name__ == "__main__":
    torch.manual_seed(0)
    readings, truth = flights(64, 41, torch.Generator().manual_seed(2))
    trainer = FilterTrainer(GainNet())
    for epoch in range(8):
        meter = Running()
        trainer.track(readings, truth, meter)
        print(f"epoch {epoch} error {meter.mean():.4f}")
