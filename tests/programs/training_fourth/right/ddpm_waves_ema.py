"""Diffusion on short waveforms. A moving average of the weights draws the previews; the trained network itself is
put into eval mode only for the validation loss and is set back afterwards."""
import copy
import math

import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)
torch.manual_seed(0)

LENGTH, STEPS = 16, 30
betas = torch.linspace(1e-3, 0.3, STEPS)
alphas = 1 - betas
alpha_bar = alphas.cumprod(0)


def tones(n):
    t = torch.linspace(0, 1, LENGTH)
    return torch.sin(2 * math.pi * (torch.randint(1, 3, (n, 1)) * t + torch.rand(n, 1)))


class Denoiser(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.time = nn.Embedding(STEPS, 16)
        self.net = nn.Sequential(
            nn.Linear(LENGTH + 16, width), nn.SiLU(), nn.Dropout(0.05),
            nn.Linear(width, width), nn.SiLU(),
            nn.Linear(width, LENGTH),
        )

    def forward(self, x, t):
        return self.net(torch.cat([x, self.time(t)], 1))


class MovingAverage:
    def __init__(self, model, decay=0.98):
        self.decay = decay
        self.model = copy.deepcopy(model).eval().requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for slow, fast in zip(self.model.parameters(), model.parameters()):
            slow.lerp_(fast, 1 - self.decay)


def denoising_loss(model, x, generator=None):
    t = torch.randint(STEPS, (len(x),), generator=generator)
    noise = torch.randn(x.shape, generator=generator)
    scale = alpha_bar[t].unsqueeze(1)
    return F.mse_loss(model(scale.sqrt() * x + (1 - scale).sqrt() * noise, t), noise)


def validation_loss(model, x):
    was_training = model.training
    model.eval()
    with torch.no_grad():
        loss = denoising_loss(model, x, torch.Generator().manual_seed(0)).item()
    model.train(was_training)
    return loss


@torch.no_grad()
def sample(model, n):
    x = torch.randn(n, LENGTH)
    for step in reversed(range(STEPS)):
        eps = model(x, torch.full((n,), step))
        x = (x - betas[step] / (1 - alpha_bar[step]).sqrt() * eps) / alphas[step].sqrt()
        if step:
            x = x + betas[step].sqrt() * torch.randn_like(x)
    return x


model = Denoiser()
average = MovingAverage(model)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
held_out = tones(1024)
for i in range(1, 901):
    loss = denoising_loss(model, tones(64))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    average.update(model)
    if i % 150 == 0:
        power = sample(average.model, 128).pow(2).mean().item()
        print(f"iteration {i}  validation {validation_loss(model, held_out):.3f}  "
              f"averaged {validation_loss(average.model, held_out):.3f}  power of previews {power:.3f}")

print(f"power of the data {held_out.pow(2).mean().item():.3f}")
