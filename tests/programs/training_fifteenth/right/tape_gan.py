"""GAN on a ring of Gaussians, port of a tf.GradientTape loop: both players move at once from one forward pass.

Gradients are taken per player from the same graph and handed to the optimizers, like tape.gradient /
apply_gradients. The discriminator has a zero-centred gradient penalty on the real points.
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(2)

MODES = 6
NOISE = 4
BATCH = 128
STEPS = 1500
R1 = 0.1


def real_points(n):
    k = torch.randint(MODES, (n,))
    angle = 2 * math.pi * k / MODES
    centre = torch.stack([angle.cos(), angle.sin()], dim=1)
    return centre + 0.08 * torch.randn(n, 2)


def mlp(n_in, n_out, width=64):
    return nn.Sequential(
        nn.Linear(n_in, width), nn.LeakyReLU(0.2),
        nn.Linear(width, width), nn.LeakyReLU(0.2),
        nn.Linear(width, n_out),
    )


def apply_gradients(optimizer, params, grads):
    for p, g in zip(params, grads):
        p.grad = g
    optimizer.step()


generator = mlp(NOISE, 2)
discriminator = mlp(2, 1)
g_params = list(generator.parameters())
d_params = list(discriminator.parameters())
g_opt = torch.optim.Adam(g_params, lr=1e-3, betas=(0.5, 0.99))
d_opt = torch.optim.Adam(d_params, lr=2e-3, betas=(0.5, 0.99))

# Average of the generator's weights along training, used for the samples at the end.
averaged = mlp(NOISE, 2)
averaged.load_state_dict(generator.state_dict())
averaged.requires_grad_(False)


def coverage(points):
    """Share of the points near a mode, and the number of modes with at least a few points."""
    k = torch.arange(MODES)
    centre = torch.stack([(2 * math.pi * k / MODES).cos(), (2 * math.pi * k / MODES).sin()], dim=1)
    dist, nearest = torch.cdist(points, centre).min(dim=1)
    good = dist < 0.3
    counts = torch.bincount(nearest[good], minlength=MODES)
    return good.float().mean().item(), int((counts > 0.03 * len(points)).sum())


for step in range(STEPS):
    real = real_points(BATCH).requires_grad_(True)
    fake = generator(torch.randn(BATCH, NOISE))

    real_logit = discriminator(real)
    fake_logit = discriminator(fake)

    slope, = torch.autograd.grad(real_logit.sum(), real, create_graph=True)
    penalty = 0.5 * R1 * slope.pow(2).sum(dim=1).mean()
    d_loss = F.softplus(-real_logit).mean() + F.softplus(fake_logit).mean() + penalty
    g_loss = F.softplus(-fake_logit).mean()

    d_grads = torch.autograd.grad(d_loss, d_params, retain_graph=True)
    g_grads = torch.autograd.grad(g_loss, g_params)

    apply_gradients(d_opt, d_params, d_grads)
    apply_gradients(g_opt, g_params, g_grads)

    rate = min(0.995, (1 + step) / (10 + step))
    with torch.no_grad():
        for slow, fast in zip(averaged.parameters(), g_params):
            slow.lerp_(fast, 1 - rate)

    if step % 300 == 0:
        print(f"step {step:4d}  d {d_loss.item():.3f}  g {g_loss.item():.3f}")

with torch.no_grad():
    near, modes = coverage(averaged(torch.randn(2000, NOISE)))
print(f"near a mode {near:.3f}, modes found {modes}/{MODES}")
