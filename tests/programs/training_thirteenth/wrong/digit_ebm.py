"""Energy-based model of small stroke images, trained by contrastive divergence with Langevin chains from a replay buffer."""
import torch
from torch import nn

torch.manual_seed(21)

SIDE = 8
BATCH = 64
STEPS = 101
LANGEVIN_STEPS = 10
STEP_SIZE = 0.05
NOISE = 0.02


def strokes(n):
    """Images with one horizontal or vertical bar of random position and brightness."""
    images = torch.zeros(n, 1, SIDE, SIDE)
    where = torch.randint(1, SIDE - 1, (n,))
    level = 0.6 + 0.4 * torch.rand(n)
    vertical = torch.rand(n) < 0.5
    for i in range(n):
        if vertical[i]:
            images[i, 0, 1:-1, where[i]] = level[i]
        else:
            images[i, 0, where[i], 1:-1] = level[i]
    return (images + 0.03 * torch.randn_like(images)).clamp(0, 1)


class Energy(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1), nn.SiLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1), nn.SiLU(),
            nn.Conv2d(2 * width, 2 * width, 3, stride=2, padding=1), nn.SiLU(),
        )
        self.head = nn.Linear(2 * width * (SIDE // 4) ** 2, 1, bias=False)

    def forward(self, x):
        return self.head(self.features(x).flatten(1)).squeeze(1)


def langevin(energy, start, steps=LANGEVIN_STEPS):
    x = start.clone().requires_grad_(True)
    for _ in range(steps):
        x.grad = None
        energy(x).sum().backward()
        with torch.no_grad():
            x.sub_(STEP_SIZE * x.grad.clamp(-1, 1))
            x.add_(NOISE * torch.randn_like(x))
            x.clamp_(0, 1)
    return x.detach()


class ReplayBuffer:
    def __init__(self, size=1024, fresh=0.1):
        self.images = torch.rand(size, 1, SIDE, SIDE)
        self.fresh = fresh

    def draw(self, n):
        index = torch.randint(len(self.images), (n,))
        start = self.images[index].clone()
        restart = torch.rand(n) < self.fresh
        start[restart] = torch.rand(int(restart.sum()), 1, SIDE, SIDE)
        return index, start

    def put_back(self, index, images):
        self.images[index] = images


def main():
    energy = Energy()
    optimizer = torch.optim.Adam(energy.parameters(), lr=1e-3, betas=(0.5, 0.999))
    buffer = ReplayBuffer()
    test = strokes(512)
    gaps = []
    for step in range(STEPS):
        real = strokes(BATCH)
        optimizer.zero_grad()
        index, start = buffer.draw(BATCH)
        fake = langevin(energy, start)
        buffer.put_back(index, fake)

        e_real, e_fake = energy(real), energy(fake)
        contrast = e_real.mean() - e_fake.mean()
        size = (e_real.pow(2) + e_fake.pow(2)).mean()
        loss = contrast + 0.1 * size
        loss.backward()
        nn.utils.clip_grad_norm_(energy.parameters(), 1.0)
        optimizer.step()
        gaps.append(contrast.item())
        if step % 20 == 0:
            print(f"step {step:4d}  contrast {contrast.item():+.4f}  size {size.item():.4f}")

    with torch.no_grad():
        noise_rank = (energy(test).mean() < energy(torch.rand_like(test))).float().mean().item()
        contrast = (energy(test).mean() - energy(buffer.images).mean()).item()
    sample_mean = buffer.images.mean().item()
    print(f"noise above data {noise_rank:.3f}  contrast {contrast:+.4f}  "
          f"mean brightness: chains {sample_mean:.3f}, data {test.mean().item():.3f}")
    return noise_rank


if __name__ == "__main__":
    final_rank = main()
