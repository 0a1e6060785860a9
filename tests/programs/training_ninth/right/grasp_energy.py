"""Energy-based model over planar grasps (position, angle, width), trained with short-run Langevin sampling."""
import torch
from torch import nn


class Energy(nn.Module):
    def __init__(self, dim=4, width=64):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(dim, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1)
        )

    def forward(self, x):
        return self.net(x).squeeze(-1)


def demonstrations(n, gen):
    """Grasps cluster on two handles of a mug; the width follows the approach angle."""
    side = torch.randint(0, 2, (n, 1), generator=gen).float() * 2 - 1
    centre = torch.cat([0.9 * side, 0.2 * side], dim=1)
    position = centre + 0.12 * torch.randn(n, 2, generator=gen)
    angle = 0.5 * side + 0.15 * torch.randn(n, 1, generator=gen)
    width = 0.4 + 0.3 * angle + 0.05 * torch.randn(n, 1, generator=gen)
    return torch.cat([position, angle, width], dim=1)


def langevin(energy, x, steps, gen, step_size=0.02, noise=0.02):
    x = x.detach().clone()
    for _ in range(steps):
        x.requires_grad_(True)
        (slope,) = torch.autograd.grad(energy(x).sum(), x)
        with torch.no_grad():
            x = x - step_size * slope.clamp(-5, 5) + noise * torch.randn(x.shape, generator=gen)
            x = x.clamp(-2, 2)
    return x.detach()


class Replay:
    def __init__(self, size, dim, gen):
        self.gen = gen
        self.data = torch.rand(size, dim, generator=gen) * 4 - 2

    def draw(self, n, fresh=0.05):
        idx = torch.randint(0, len(self.data), (n,), generator=self.gen)
        start = self.data[idx]
        reset = torch.rand(n, generator=self.gen) < fresh
        start[reset] = torch.rand(int(reset.sum()), start.shape[1], generator=self.gen) * 4 - 2
        return idx, start

    def put(self, idx, x):
        self.data[idx] = x


def train(steps=300, batch=128):
    torch.manual_seed(3)
    gen = torch.Generator().manual_seed(3)
    energy = Energy()
    replay = Replay(1024, 4, gen)
    optimizer = torch.optim.Adam(energy.parameters(), lr=1e-3)
    for step in range(steps):
        real = demonstrations(batch, gen)
        real = real + 0.01 * torch.randn(real.shape, generator=gen)
        idx, start = replay.draw(batch)
        fake = langevin(energy, start, 15, gen)
        replay.put(idx, fake)

        e_real, e_fake = energy(real), energy(fake)
        contrast = e_real.mean() - e_fake.mean()
        size = (e_real ** 2 + e_fake ** 2).mean()
        loss = contrast + 0.1 * size

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 60 == 0:
            print(f"{step:4d}  contrast {contrast.item():+.3f}  size {size.item():.3f}")
    return energy, gen


def separation(energy, gen):
    real = demonstrations(500, gen)
    junk = torch.rand(500, 4, generator=gen) * 4 - 2
    with torch.no_grad():
        gap = energy(junk)[:, None] - energy(real)[None]
    return (gap > 0).float().mean().item()


if __name__ == "__main__":
    energy, gen = train()
    start = torch.rand(200, 4, generator=gen) * 4 - 2
    grasps = langevin(energy, start, 150, gen)
    nearest = torch.cdist(grasps, demonstrations(500, gen)).min(dim=1).values
    print(f"AUC {separation(energy, gen):.3f}  median distance to a demonstration {nearest.median().item():.3f}")
