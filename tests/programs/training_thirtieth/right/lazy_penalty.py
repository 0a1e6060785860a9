"""Non-saturating GAN on a planar mixture with a lazily applied R1 penalty and an averaged generator."""
import copy
import math

import torch
import torch.nn.functional as F
from torch import nn

NOISE = 4
BATCH = 128
STEPS = 160
R1_WEIGHT = 0.2
R1_EVERY = 4
EMA_DECAY = 0.98


def mixture(n, modes=6):
    angle = 2 * math.pi * torch.randint(modes, (n,)).float() / modes
    centres = torch.stack([angle.cos(), angle.sin()], dim=1)
    return 1.5 * centres + 0.12 * torch.randn(n, 2)


class EqualLinear(nn.Module):
    """Weights are kept at unit variance and scaled when used, so that all layers learn at the same speed."""

    def __init__(self, fan_in, fan_out, gain=math.sqrt(2)):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(fan_out, fan_in))
        self.bias = nn.Parameter(torch.zeros(fan_out))
        self.scale = gain / math.sqrt(fan_in)

    def forward(self, x):
        return F.linear(x, self.weight * self.scale, self.bias)


def mlp(fan_in, fan_out, width=64):
    return nn.Sequential(
        EqualLinear(fan_in, width), nn.LeakyReLU(0.2),
        EqualLinear(width, width), nn.LeakyReLU(0.2),
        EqualLinear(width, fan_out, gain=1.0),
    )


def requires_grad(model, flag):
    for p in model.parameters():
        p.requires_grad = flag


def accumulate(target, source, decay):
    pairs = zip(target.parameters(), source.parameters())
    for averaged, current in pairs:
        averaged.data.mul_(decay).add_(current.data, alpha=1 - decay)


def r1_penalty(real_pred, real):
    (grad,) = torch.autograd.grad(outputs=real_pred.sum(), inputs=real, create_graph=True)
    return grad.pow(2).sum(dim=1).mean()


def mode_shares(points, modes=6):
    angle = torch.atan2(points[:, 1], points[:, 0]) % (2 * math.pi)
    index = torch.round(angle / (2 * math.pi / modes)).long() % modes
    return torch.bincount(index, minlength=modes).float() / len(points)


def main():
    torch.manual_seed(41)
    data = mixture(4096)
    generator, critic = mlp(NOISE, 2), mlp(2, 1)
    averaged = copy.deepcopy(generator).eval()
    ratio = R1_EVERY / (R1_EVERY + 1)
    opt_g = torch.optim.Adam(generator.parameters(), lr=1e-2, betas=(0.0, 0.99))
    opt_d = torch.optim.Adam(critic.parameters(), lr=1e-2 * ratio, betas=(0.0, 0.99**ratio))
    r1 = torch.zeros(())

    for step in range(STEPS):
        real = data[torch.randint(len(data), (BATCH,))]

        requires_grad(generator, False)
        requires_grad(critic, True)
        fake = generator(torch.randn(BATCH, NOISE))
        d_loss = F.softplus(-critic(real)).mean() + F.softplus(critic(fake)).mean()
        critic.zero_grad()
        d_loss.backward()
        opt_d.step()

        if step % R1_EVERY == 0:
            real.requires_grad = True
            real_pred = critic(real)
            r1 = r1_penalty(real_pred, real)
            critic.zero_grad()
            (R1_WEIGHT / 2 * r1 * R1_EVERY + 0 * real_pred[0]).backward()
            opt_d.step()

        requires_grad(generator, True)
        requires_grad(critic, False)
        g_loss = F.softplus(-critic(generator(torch.randn(BATCH, NOISE)))).mean()
        generator.zero_grad()
        g_loss.backward()
        opt_g.step()
        accumulate(averaged, generator, EMA_DECAY)

        if step % 40 == 0 or step == STEPS - 1:
            print(f"step {step:4d}  d {d_loss.item():.3f}  g {g_loss.item():.3f}  r1 {r1.item():.3f}")

    with torch.no_grad():
        points = averaged(torch.randn(2000, NOISE))
        nearest = torch.cdist(points, data).min(dim=1).values.mean().item()
    print(f"shares of the modes {[round(s, 3) for s in mode_shares(points).tolist()]}")
    print(f"mean distance of a sample to the data {nearest:.3f}")
    return generator, critic, averaged, data, nearest


if __name__ == "__main__":
    generator, critic, averaged, data, nearest = main()
