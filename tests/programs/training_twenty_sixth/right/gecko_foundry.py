"""A small GAN that imitates the measured deviations of cast parts."""
import torch
import torch.nn as nn
import torch.nn.functional as F

NOISE_DIM = 8


def castings(n, gen):
    """Length and width deviations of cast parts: correlated, and off centre."""
    eps = torch.randn(n, 2, generator=gen)
    length = 1.0 + 0.8 * eps[:, 0]
    width = -0.5 + 0.5 * eps[:, 0] + 0.3 * eps[:, 1]
    return torch.stack([length, width], dim=1)


class Generator(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(NOISE_DIM, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 2)
        )

    def forward(self, z):
        return self.net(z)


class Critic(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, hidden), nn.LeakyReLU(0.2), nn.Linear(hidden, hidden), nn.LeakyReLU(0.2), nn.Linear(hidden, 1)
        )

    def forward(self, x):
        return self.net(x)


class GanTrainer:
    def __init__(self, lr=1e-3, seed=4):
        torch.manual_seed(seed)
        self.gen = torch.Generator().manual_seed(seed)
        self.generator, self.critic = Generator(), Critic()
        self.opt_g = torch.optim.Adam(self.generator.parameters(), lr=lr, betas=(0.0, 0.9))
        self.opt_d = torch.optim.Adam(self.critic.parameters(), lr=5 * lr, betas=(0.0, 0.9))

    def noise(self, n):
        return torch.randn(n, NOISE_DIM, generator=self.gen)

    def critic_step(self, batch_size):
        real = castings(batch_size, self.gen)
        fake = self.generator(self.noise(batch_size))
        real_logits, fake_logits = self.critic(real), self.critic(fake)
        loss = F.binary_cross_entropy_with_logits(real_logits, torch.ones_like(real_logits))
        loss = loss + F.binary_cross_entropy_with_logits(fake_logits, torch.zeros_like(fake_logits))
        self.opt_d.zero_grad()
        loss.backward()
        self.opt_d.step()
        return loss.item()

    def generator_step(self, batch_size):
        self.opt_g.zero_grad()
        logits = self.critic(self.generator(self.noise(batch_size)))
        loss = F.binary_cross_entropy_with_logits(logits, torch.ones_like(logits))
        loss.backward()
        self.opt_g.step()
        return loss.item()

    def fit(self, steps=400, batch_size=128):
        for step in range(1, steps + 1):
            d_loss = self.critic_step(batch_size)
            g_loss = self.generator_step(batch_size)
            if step % 100 == 0:
                print(f"step {step}: critic {d_loss:.3f}  generator {g_loss:.3f}  {self.moments()}")

    @torch.no_grad()
    def moments(self, n=2000):
        """Distance of the generated mean and covariance from those of real parts."""
        real = castings(n, torch.Generator().manual_seed(1))
        fake = self.generator(torch.randn(n, NOISE_DIM, generator=torch.Generator().manual_seed(0)))
        mean_gap = (real.mean(dim=0) - fake.mean(dim=0)).norm().item()
        cov_gap = (torch.cov(real.t()) - torch.cov(fake.t())).norm().item()
        return {"mean_gap": round(mean_gap, 3), "cov_gap": round(cov_gap, 3)}


if __name__ == "__main__":
    trainer = GanTrainer()
    trainer.fit()
    print("final", trainer.moments())
