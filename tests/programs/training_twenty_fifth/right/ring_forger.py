"""WGAN-GP on a 2-d ring; critic and generator get their gradients from a single backward pass per step."""
import torch
import torch.nn as nn


class Flip(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -grad


def mlp(n_in, n_out, width=48):
    return nn.Sequential(
        nn.Linear(n_in, width), nn.LeakyReLU(0.2),
        nn.Linear(width, width), nn.LeakyReLU(0.2),
        nn.Linear(width, n_out),
    )


def real_batch(n):
    angle = torch.rand(n) * 2 * torch.pi
    return torch.stack([angle.cos(), angle.sin()], dim=1) * 1.5 + 0.05 * torch.randn(n, 2)


def gradient_penalty(critic, real, fake):
    mix = torch.rand(len(real), 1)
    point = (mix * real + (1 - mix) * fake).detach().requires_grad_(True)
    grad, = torch.autograd.grad(critic(point).sum(), point, create_graph=True)
    return (grad.norm(dim=1) - 1).pow(2).mean()


class Trainer:
    def __init__(self, latent=4, batch=128, lr_g=2e-3, lr_d=4e-3, gp=1.0):
        self.latent, self.batch, self.gp = latent, batch, gp
        self.gen, self.critic = mlp(latent, 2), mlp(2, 1)
        self.opt = torch.optim.Adam(
            [
                {"params": self.gen.parameters(), "lr": lr_g},
                {"params": self.critic.parameters(), "lr": lr_d},
            ],
            betas=(0.0, 0.9),
        )

    def loss(self, real, z):
        fake = self.gen(z)
        wasserstein = self.critic(real).mean() - self.critic(Flip.apply(fake)).mean()
        penalty = gradient_penalty(self.critic, real, fake)
        return -wasserstein + self.gp * penalty, wasserstein

    def step(self):
        real, z = real_batch(self.batch), torch.randn(self.batch, self.latent)
        loss, wasserstein = self.loss(real, z)
        self.opt.zero_grad(set_to_none=True)
        loss.backward()
        self.opt.step()
        return wasserstein.item()

    @torch.no_grad()
    def sample(self, n):
        return self.gen(torch.randn(n, self.latent))


def ring_error(points):
    """Mean distance to the ring, and the share of 12 sectors that hold at least 2 % of the points."""
    radial = (points.norm(dim=1) - 1.5).abs().mean().item()
    sector = ((torch.atan2(points[:, 1], points[:, 0]) + torch.pi) / (2 * torch.pi) * 12).long().clamp(max=11)
    share = torch.bincount(sector, minlength=12) / len(points)
    return radial, (share > 0.02).float().mean().item()


def main(steps=600):
    torch.manual_seed(1)
    trainer = Trainer()
    trace = []
    for i in range(1, steps + 1):
        trace.append(trainer.step())
        if i % 100 == 0:
            radial, cover = ring_error(trainer.sample(1000))
            print(f"step {i:4d}  W {sum(trace[-100:]) / 100:.3f}  radial error {radial:.3f}  coverage {cover:.2f}")
    return trainer


if __name__ == "__main__":
    trainer = main()
    radial, cover = ring_error(trainer.sample(2000))
    print(f"final radial error {radial:.3f}, coverage {cover:.2f}")
