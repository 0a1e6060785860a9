import torch
import torch.nn.functional as F
from torch import nn


def corrupt(x, t):
    keep = torch.cos(0.5 * torch.pi * t)
    noise = torch.randn_like(x)
    return keep * x + torch.sin(0.5 * torch.pi * t) * noise, noise


class Scorer(nn.Module):
    def __init__(self, dim=2, width=64):
        super().__init__()
        self.a = nn.Linear(dim + 2, width)
        self.b = nn.Linear(width, width)
        self.c = nn.Linear(width, dim)

    def forward(self, x, t):
        h = F.silu(self.a(torch.cat([x, t, t * t], 1)))
        return self.c(F.silu(self.b(h)))


class Trainer:
    def __init__(self, points, held, every=4):
        self.points, self.held, self.every = points, held, every
        self.model = Scorer()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=2e-3, betas=(0.9, 0.99))
        self.state = torch.get_rng_state()

    def objective(self, x):
        t = torch.rand(len(x), 1)
        y, noise = corrupt(x, t)
        return F.mse_loss(self.model(y, t), noise)

    @torch.no_grad()
    def evaluate(self):
        outside = torch.get_rng_state()
        torch.set_rng_state(self.state)
        value = self.objective(self.held).item()
        torch.set_rng_state(outside)
        return value

    def run(self, steps):
        losses = []
        for step in range(1, steps + 1):
            pick = torch.randint(len(self.points), (32,))
            loss = self.objective(self.points[pick])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
            if step % self.every == 0:
                losses.append(self.evaluate())
            if step % 100 == 0:
                print(f"step {step}: train {sum(losses[-5:-1]) / 4:.4f} held-out {losses[-1]:.4f}")


def spiral(n):
    r = torch.rand(n, 1)
    angle = 9 * r
    return 2 * r * torch.cat([angle.cos(), angle.sin()], 1) + 0.05 * torch.randn(n, 2)


if __name__ == "__main__":
    torch.manual_seed(14)
    Trainer(spiral(2000), spiral(500)).run(500)
