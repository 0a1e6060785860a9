import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(19)
KEYS = ("area", "rooms", "floor", "age")


def flats(n):
    raw = {k: torch.rand(n) for k in KEYS}
    rent = 3 * raw["area"] + raw["rooms"] - 0.8 * raw["age"] * raw["area"] + 0.1 * torch.randn(n)
    return raw, rent


class RentNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.ModuleDict({k: nn.Linear(1, 8) for k in KEYS})
        self.out = nn.Sequential(nn.ReLU(), nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, raw):
        lifted = torch.stack([self.lift[k](raw[k].unsqueeze(-1)) for k in KEYS])
        return self.out(lifted.sum(0))


class Job:
    def __init__(self):
        self.net = RentNet()
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1, momentum=0.8)

    def loss(self, raw, rent):
        guess = self.net(raw)
        return F.huber_loss(guess.T, rent, delta=0.5)

    def train(self, steps):
        for s in range(steps):
            loss = self.loss(*flats(64))
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            if s % 30 == 29:
                print(f"{s + 1} loss {loss.item():.4f}")


job = Job()
job.train(120)
with torch.no_grad():
    raw, rent = flats(400)
    gap = (job.net(raw)[:, 0] - rent).abs().mean()
print(f"mean error {gap.item():.4f}")
