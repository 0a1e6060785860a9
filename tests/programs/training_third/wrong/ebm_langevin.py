import torch
from torch import nn


class Energy(nn.Module):
    def __init__(self, dim=2, width=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1) + 0.05 * x.pow(2).sum(-1)


class LangevinSampler:
    def __init__(self, energy, size, dim, steps=8, step_size=0.1, noise=0.02, seed=0):
        self.energy = energy
        self.steps, self.step_size, self.noise = steps, step_size, noise
        self.g = torch.Generator().manual_seed(seed)
        self.buffer = 2 * torch.randn(size, dim, generator=self.g)

    def draw(self, n):
        rows = torch.randint(0, len(self.buffer), (n,), generator=self.g)
        x = self.buffer[rows].clone()
        for _ in range(self.steps):
            x.requires_grad_(True)
            self.energy(x).sum().backward()
            with torch.no_grad():
                x = x - self.step_size * x.grad + self.noise * torch.randn(x.shape, generator=self.g)
        self.buffer[rows] = x
        return x


class Trainer:
    def __init__(self, energy, sampler, lr=1e-3, decay=0.1):
        self.energy, self.sampler, self.decay = energy, sampler, decay
        self.opt = torch.optim.Adam(energy.parameters(), lr=lr, betas=(0.5, 0.99))

    def step(self, positive):
        self.opt.zero_grad()
        negative = self.sampler.draw(len(positive))
        e_pos, e_neg = self.energy(positive), self.energy(negative)
        loss = (e_pos - e_neg).mean() + self.decay * (e_pos**2 + e_neg**2).mean()
        loss.backward()
        self.opt.step()
        return loss.item(), (e_pos.mean() - e_neg.mean()).item()

    def run(self, data, steps, g):
        for k in range(steps):
            batch = data[torch.randint(0, len(data), (64,), generator=g)]
            loss, gap = self.step(batch)
            if k % 10 == 9:
                print(f"{k + 1:3d} loss {loss:.3f} gap {gap:.3f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    corner = torch.tensor([[1.0, 1.0], [-1.0, 1.0], [0.0, -1.3]])
    data = corner[torch.randint(0, 3, (900,))] + 0.15 * torch.randn(900, 2)
    energy = Energy()
    trainer = Trainer(energy, LangevinSampler(energy, 256, 2))
    trainer.run(data, steps=40, g=torch.Generator().manual_seed(3))
