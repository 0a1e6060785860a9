"""Least-squares GAN for two moons; the discriminator sees the detached fake batch first."""
import math
import torch
from torch import nn, optim

torch.set_num_threads(1)


class Generator(nn.Module):
    def __init__(self, z_dim=8, width=64):
        super().__init__()
        self.z_dim = z_dim
        self.net = nn.Sequential(nn.Linear(z_dim, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                                 nn.Linear(width, 2))

    def forward(self, n):
        return self.net(torch.randn(n, self.z_dim))


class Discriminator(nn.Sequential):
    def __init__(self, width=64):
        super().__init__(nn.Linear(2, width), nn.LeakyReLU(0.2), nn.Linear(width, width), nn.LeakyReLU(0.2),
                         nn.Linear(width, 1))


def moons(n):
    t = math.pi * torch.rand(n)
    upper = torch.rand(n) < 0.5
    x = torch.where(upper, t.cos(), 1 - t.cos())
    y = torch.where(upper, t.sin(), 0.5 - t.sin())
    return torch.stack([x - 0.5, y - 0.25], dim=1) + 0.05 * torch.randn(n, 2)


class LSGAN:
    def __init__(self, lr=2e-3):
        self.g, self.d = Generator(), Discriminator()
        self.opt_g = optim.Adam(self.g.parameters(), lr=lr / 2, betas=(0.5, 0.99))
        self.opt_d = optim.Adam(self.d.parameters(), lr=lr, betas=(0.5, 0.99))

    def step(self, real):
        fake = self.g(len(real))

        self.opt_d.zero_grad()  # also drops what the generator's pass of the last step left here
        d_loss = ((self.d(real) - 1) ** 2).mean() + (self.d(fake.detach()) ** 2).mean()
        d_loss.backward()
        self.opt_d.step()

        self.opt_g.zero_grad()
        g_loss = ((self.d(fake) - 1) ** 2).mean()
        g_loss.backward()
        self.opt_g.step()
        return d_loss.item(), g_loss.item()


def main():
    torch.manual_seed(2)
    gan = LSGAN()
    for step in range(700):
        d_loss, g_loss = gan.step(moons(64))
        if step % 100 == 99:
            print(f"step {step + 1}: D {d_loss:.3f} G {g_loss:.3f}")
    with torch.no_grad():
        fake, real = gan.g(1000), moons(1000)
        to_real = torch.cdist(fake, real).min(dim=1).values.mean().item()
        to_fake = torch.cdist(real, fake).min(dim=1).values.mean().item()
    print(f"fake to nearest real {to_real:.3f}, real to nearest fake {to_fake:.3f}")


if __name__ == "__main__":
    main()
