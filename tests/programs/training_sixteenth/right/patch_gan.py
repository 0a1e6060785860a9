"""Hinge GAN on 8x8 texture patches: spectral normalisation, several critic steps, frozen critic in the generator step,
and an averaged generator whose batch statistics are re-estimated before sampling."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.parametrizations import spectral_norm

torch.manual_seed(13)

SIDE, NOISE, BATCH = 8, 12, 32


def textures(n):
    """Gaussian blobs of varying width and place on a dim background, in [-1, 1]."""
    grid = torch.arange(SIDE).float()
    cy, cx = (2 + 3 * torch.rand(2, n, 1, 1)).unbind(0)
    width = 1.0 + 0.8 * torch.rand(n, 1, 1)
    dist = (grid.view(1, SIDE, 1) - cy).pow(2) + (grid.view(1, 1, SIDE) - cx).pow(2)
    return (2 * torch.exp(-dist / (2 * width.pow(2))) - 1).unsqueeze(1)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(NOISE, 32 * 4)
        self.net = nn.Sequential(
            nn.BatchNorm2d(32), nn.ReLU(),
            nn.ConvTranspose2d(32, 24, 4, stride=2, padding=1, bias=False), nn.BatchNorm2d(24), nn.ReLU(),
            nn.ConvTranspose2d(24, 1, 4, stride=2, padding=1), nn.Tanh(),
        )

    def forward(self, z):
        return self.net(self.project(z).view(-1, 32, 2, 2))


def make_critic():
    return nn.Sequential(
        spectral_norm(nn.Conv2d(1, 16, 4, stride=2, padding=1)), nn.LeakyReLU(0.2),
        spectral_norm(nn.Conv2d(16, 32, 4, stride=2, padding=1)), nn.LeakyReLU(0.2),
        nn.Flatten(), spectral_norm(nn.Linear(32 * 4, 1)),
    )


def critic_step(x):
    with torch.no_grad():
        fake = generator(torch.randn(len(x), NOISE))
    loss = F.relu(1 - critic(x)).mean() + F.relu(1 + critic(fake)).mean()
    critic_optimizer.zero_grad()
    loss.backward()
    critic_optimizer.step()
    return loss.item()


def generator_step():
    critic.requires_grad_(False)
    loss = -critic(generator(torch.randn(BATCH, NOISE))).mean()
    generator_optimizer.zero_grad()
    loss.backward()
    generator_optimizer.step()
    critic.requires_grad_(True)
    with torch.no_grad():
        for slow, fast in zip(averaged.parameters(), generator.parameters()):
            slow.mul_(0.98).add_(fast, alpha=0.02)
    return loss.item()


@torch.no_grad()
def recalibrate(model, batches=10):
    """Batch-norm statistics for the averaged weights: cumulative mean over fresh noise."""
    for m in model.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.reset_running_stats()
            m.momentum = None
    model.train()
    for _ in range(batches):
        model(torch.randn(BATCH, NOISE))
    return model.eval()


def patch_distance(fake):
    """Mean distance of generated patches to the closest real one, and the reverse (coverage)."""
    d = torch.cdist(fake.flatten(1), real[:1000].flatten(1))
    return d.min(1).values.mean().item(), d.min(0).values.mean().item()


real = textures(4096)
generator, critic = Generator(), make_critic()
averaged = copy.deepcopy(generator).requires_grad_(False)
generator_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.0, 0.9))
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.0, 0.9))

for it in range(1, 241):
    for _ in range(2):
        d_loss = critic_step(real[torch.randint(0, len(real), (BATCH,))])
    g_loss = generator_step()
    if it % 80 == 0:
        with torch.no_grad():
            fake = recalibrate(averaged)(torch.randn(1000, NOISE))
        quality, coverage = patch_distance(fake)
        print(f"iter {it}: critic {d_loss:.3f}  generator {g_loss:+.3f}  quality {quality:.2f}  coverage {coverage:.2f}")
with torch.no_grad():
    untrained = patch_distance(Generator()(torch.randn(1000, NOISE)))
print(f"untrained generator: quality {untrained[0]:.2f}  coverage {untrained[1]:.2f}")
