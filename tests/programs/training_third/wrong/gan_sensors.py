import torch
from torch import nn
import torch.nn.functional as F


class Generator(nn.Module):
    def __init__(self, noise=8, channels=6):
        super().__init__()
        self.noise = noise
        self.body = nn.Sequential(nn.Linear(noise, 32), nn.LeakyReLU(0.2), nn.Linear(32, channels))
        self.register_buffer("low", torch.full((channels,), -3.0))
        self.register_buffer("high", torch.full((channels,), 3.0))

    def forward(self, z):
        return self.body(z)

    @torch.no_grad()
    def synthesize(self, n, g):
        z = torch.randn(n, self.noise, generator=g)
        rows = self(z)
        return torch.maximum(torch.minimum(rows, self.high), self.low)


class Discriminator(nn.Module):
    def __init__(self, channels=6):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(channels, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))

    def forward(self, rows):
        return self.body(rows).squeeze(-1)


class AdversarialTrainer:
    def __init__(self, gen, disc, lr=2e-3):
        self.gen, self.disc = gen, disc
        self.opt_g = torch.optim.Adam(gen.parameters(), lr=lr, betas=(0.5, 0.99))
        self.opt_d = torch.optim.Adam(disc.parameters(), lr=lr, betas=(0.5, 0.99))
        self.g = torch.Generator().manual_seed(2)

    def judge(self, rows, genuine):
        logit = self.disc(rows)
        return F.binary_cross_entropy_with_logits(logit, torch.full_like(logit, float(genuine)))

    def update_discriminator(self, real):
        fake = self.gen.synthesize(len(real), self.g)
        loss = self.judge(real, True) + self.judge(fake, False)
        self.opt_d.zero_grad()
        loss.backward()
        self.opt_d.step()
        return loss.item()

    def update_generator(self, n):
        fake = self.gen.synthesize(n, self.g)
        loss = self.judge(fake, True)
        self.opt_g.zero_grad()
        loss.backward()
        self.opt_g.step()
        return loss.item()


def readings(n, g):
    base = torch.randn(n, 2, generator=g)
    mix = torch.randn(2, 6, generator=g)
    return 0.7 * base @ mix + 0.5 + 0.1 * torch.randn(n, 6, generator=g)


if __name__ == "__main__":
    torch.manual_seed(0)
    real = readings(640, torch.Generator().manual_seed(9))
    trainer = AdversarialTrainer(Generator(), Discriminator())
    for epoch in range(4):
        for batch in real.split(64):
            d = trainer.update_discriminator(batch)
            q = trainer.update_generator(len(batch))
        print(f"epoch {epoch} disc {d:.3f} gen {q:.3f}")
