"""GAN on a ring of eight Gaussians, with the score of the critic logged on fresh samples."""
import math
import torch
import torch.nn as nn

torch.set_num_threads(1)
torch.manual_seed(4)

Z_DIM = 4
BATCH = 64
STEPS = 700


def mlp(*sizes):
    layers = []
    for a, b in zip(sizes[:-2], sizes[1:-1]):
        layers += [nn.Linear(a, b), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers, nn.Linear(sizes[-2], sizes[-1]))


def sample_ring(n):
    angle = torch.randint(8, (n,)) * (2 * math.pi / 8)
    centre = torch.stack([angle.cos(), angle.sin()], dim=1)
    return 2 * centre + 0.1 * torch.randn(n, 2)


generator = mlp(Z_DIM, 64, 64, 2)
discriminator = mlp(2, 64, 64, 1)
opt_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(discriminator.parameters(), lr=1e-3, betas=(0.5, 0.999))
bce = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(BATCH, 1), torch.zeros(BATCH, 1)

for step in range(STEPS):
    # generator
    z = torch.randn(BATCH, Z_DIM)
    fake = generator(z)
    g_loss = bce(discriminator(fake), ones)
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()

    # discriminator
    real = sample_ring(BATCH)
    d_real = bce(discriminator(real), ones)
    d_fake = bce(discriminator(fake.detach()), zeros)
    d_loss = d_real + d_fake
    d_loss.backward()
    opt_d.step()
    opt_d.zero_grad()

    if (step + 1) % 100 == 0:
        with torch.no_grad():
            spread = fake.norm(dim=1)
        print(f"step {step + 1:4d}  D {d_loss.item():.3f}  G {g_loss.item():.3f}  "
              f"radius {spread.mean():.2f} +- {spread.std():.2f}")

with torch.no_grad():
    samples = generator(torch.randn(2000, Z_DIM))
    angle = torch.arange(8) * (2 * math.pi / 8)
    modes = 2 * torch.stack([angle.cos(), angle.sin()], dim=1)
    distance, nearest = torch.cdist(samples, modes).min(dim=1)
    good = distance < 0.4
    coverage = len(set(nearest[good].tolist()))
    score_real = torch.sigmoid(discriminator(sample_ring(1000))).mean().item()
    score_fake = torch.sigmoid(discriminator(samples)).mean().item()

print(f"near a mode: {good.float().mean().item():.2%}, modes covered: {coverage}/8")
print(f"mean score of real {score_real:.3f}, of fake {score_fake:.3f}")
