"""WGAN-GP (Gulrajani et al., 2017) on small two-channel stroke images."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(5)
np.random.seed(5)

SIZE = 12
BATCH = 32
Z_DIM = 8
LAMBDA = 10.0
N_CRITIC = 3
GEN_STEPS = 90


def make_images(n):
    """Rings of random radius and centre; channel 0 is the ring, channel 1 its filled interior."""
    yy, xx = np.mgrid[0:SIZE, 0:SIZE].astype(np.float32)
    cx = np.random.uniform(4.5, 6.5, (n, 1, 1))
    cy = np.random.uniform(4.5, 6.5, (n, 1, 1))
    radius = np.random.uniform(2.0, 4.0, (n, 1, 1))
    dist = np.sqrt((xx[None] - cx) ** 2 + (yy[None] - cy) ** 2)
    ring = np.exp(-((dist - radius) ** 2) / 0.6)
    inside = 1.0 / (1.0 + np.exp((dist - radius) * 3.0))
    images = np.stack([ring, inside], axis=1).astype(np.float32)
    return torch.from_numpy(images * 2 - 1)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(Z_DIM, 32 * 3 * 3)
        self.up1 = nn.ConvTranspose2d(32, 16, 4, stride=2, padding=1)
        self.up2 = nn.ConvTranspose2d(16, 2, 4, stride=2, padding=1)

    def forward(self, z):
        h = F.relu(self.fc(z)).view(-1, 32, 3, 3)
        h = F.relu(self.up1(h))
        return torch.tanh(self.up2(h))


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(2, 16, 4, stride=2, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 4, stride=2, padding=1)
        self.out = nn.Linear(32 * 3 * 3, 1)

    def forward(self, x):
        h = F.leaky_relu(self.conv1(x), 0.2)
        h = F.leaky_relu(self.conv2(h), 0.2)
        return self.out(h.flatten(1)).squeeze(1)


def gradient_penalty(critic, real, fake):
    eps = torch.rand(real.size(0), 1, 1, 1)
    mixed = (eps * real + (1 - eps) * fake).requires_grad_(True)
    score = critic(mixed)
    grad, = torch.autograd.grad(score, mixed, grad_outputs=torch.ones_like(score),
                                create_graph=True)
    grad_norm = grad.norm(2, dim=1)
    return LAMBDA * ((grad_norm - 1) ** 2).mean()


images = make_images(2048)
gen, critic = Generator(), Critic()
opt_g = torch.optim.Adam(gen.parameters(), lr=5e-4, betas=(0.0, 0.9))
opt_c = torch.optim.Adam(critic.parameters(), lr=5e-4, betas=(0.0, 0.9))

for step in range(GEN_STEPS):
    for _ in range(N_CRITIC):
        real = images[torch.randint(0, len(images), (BATCH,))]
        with torch.no_grad():
            fake = gen(torch.randn(BATCH, Z_DIM))
        loss_w = critic(fake).mean() - critic(real).mean()
        gp = gradient_penalty(critic, real, fake)
        opt_c.zero_grad()
        (loss_w + gp).backward()
        opt_c.step()

    fake = gen(torch.randn(BATCH, Z_DIM))
    loss_g = -critic(fake).mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()

    if (step + 1) % 30 == 0:
        print(f"step {step + 1:4d}  wasserstein {-loss_w.item():8.3f}  gp {gp.item():7.3f}")

with torch.no_grad():
    samples = gen(torch.randn(512, Z_DIM))
gap = (samples.mean(0) - images.mean(0)).abs().mean().item()
print(f"mean image gap {gap:.4f}")
