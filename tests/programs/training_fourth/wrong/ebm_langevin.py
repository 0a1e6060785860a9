"""Energy-based model of a two-dimensional mixture, trained by contrastive divergence with short Langevin chains."""
import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)

MODES = torch.tensor([[1.5, 0.0], [-1.5, 0.0], [0.0, 1.5], [0.0, -1.5]])


def real_samples(n):
    return MODES[torch.randint(len(MODES), (n,))] + 0.25 * torch.randn(n, 2)


class Energy(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, width), nn.SiLU(),
            nn.Linear(width, width), nn.SiLU(),
            nn.Linear(width, 1),
        )

    def forward(self, x):
        return self.net(x).squeeze(1) + 0.05 * x.pow(2).sum(1)


def langevin(energy, x, steps=15, step_size=0.1, noise=0.1):
    """Walk downhill on the energy with a bit of noise and return the end points."""
    x = x.clone().requires_grad_(True)
    for _ in range(steps):
        energy(x).sum().backward()
        with torch.no_grad():
            x -= step_size * x.grad.clamp(-1, 1)
            x += noise * torch.randn_like(x)
            x.grad.zero_()
    return x.detach()


class ReplayBuffer:
    def __init__(self, size=512):
        self.points = torch.empty(size, 2).uniform_(-3, 3)

    def draw(self, n):
        index = torch.randint(len(self.points), (n,))
        start = self.points[index].clone()
        restart = torch.rand(n) < 0.1
        start[restart] = torch.empty(int(restart.sum()), 2).uniform_(-3, 3)
        return index, start

    def store(self, index, points):
        self.points[index] = points


def train(energy, iterations=200, batch=64):
    optimizer = torch.optim.Adam(energy.parameters(), lr=2e-3)
    buffer = ReplayBuffer()
    for i in range(iterations):
        optimizer.zero_grad()
        real = real_samples(batch)
        index, start = buffer.draw(batch)
        fake = langevin(energy, start)
        buffer.store(index, fake)

        e_real, e_fake = energy(real), energy(fake)
        contrast = e_real.mean() - e_fake.mean()
        size = 0.05 * (e_real.pow(2).mean() + e_fake.pow(2).mean())
        loss = contrast + size
        loss.backward()
        nn.utils.clip_grad_norm_(energy.parameters(), 1.0)
        optimizer.step()
        if i % 50 == 0:
            print(f"iteration {i:4d}  energy of data {e_real.mean().item():.3f}  of samples {e_fake.mean().item():.3f}")


def main():
    energy = Energy()
    train(energy)
    inside = real_samples(2000)
    background = torch.empty(2000, 2).uniform_(-3, 3)
    with torch.no_grad():
        low, high = energy(inside), energy(background)
    auc = (low.unsqueeze(1) < high.unsqueeze(0)).float().mean().item()
    print(f"data told from uniform background by energy: auc {auc:.3f}")


if __name__ == "__main__":
    main()
