"""Convolutional generator and discriminator on small patches."""
import torch
import torch.nn as nn


class Generator(nn.Module):
    def __init__(self, n_z=8):
        super().__init__()
        self.net = nn.Sequential(
            nn.ConvTranspose2d(n_z, 16, 4, 1, 0, bias=False), nn.BatchNorm2d(16), nn.ReLU(True),
            nn.ConvTranspose2d(16, 1, 4, 2, 1, bias=False), nn.Tanh(),
        )

    def forward(self, z):
        return self.net(z)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 16, 4, 2, 1), nn.LeakyReLU(0.2, inplace=True), nn.Conv2d(16, 1, 4, 1, 0)
        )

    def forward(self, x):
        return self.net(x).flatten()


def main():
    torch.manual_seed(25)
    gen, dis = Generator(), Discriminator()
    opt_g = torch.optim.Adam(gen.parameters(), lr=2e-4, betas=(0.5, 0.999))
    opt_d = torch.optim.Adam(dis.parameters(), lr=2e-4, betas=(0.5, 0.999))
    bce = nn.BCEWithLogitsLoss()
    ones, zeros = torch.ones(8), torch.zeros(8)
    for it in range(2):
        real = torch.rand(8, 1, 8, 8) * 2 - 1
        fake = gen(torch.randn(8, 8, 1, 1))

        opt_d.zero_grad()
        loss_d = bce(dis(real), ones) + bce(dis(fake.detach()), zeros)
        loss_d.backward()
        opt_d.step()

        opt_g.zero_grad()
        loss_g = bce(dis(fake), ones)
        loss_g.backward()
        opt_g.step()
        print(it, loss_d.item(), loss_g.item())


if __name__ == "__main__":
    main()
