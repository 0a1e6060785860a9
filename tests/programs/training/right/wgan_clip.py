"""Wasserstein GAN with weight clipping on a one-dimensional mixture."""
import torch
from torch import nn

CRITIC_STEPS, CLIP, LATENT, BATCH = 3, 0.05, 4, 64


def mixture(n):
    side = torch.where(torch.rand(n, 1) < 0.5, -1.0, 1.0)
    return 1.5 * side + 0.2 * torch.randn(n, 1)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(LATENT, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, n):
        return self.net(torch.randn(n, LATENT))


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, 32), nn.LeakyReLU(0.2), nn.Linear(32, 32), nn.LeakyReLU(0.2))
        self.score = nn.Linear(32, 1, bias=False)

    def forward(self, x):
        return self.score(self.net(x))


def main():
    torch.manual_seed(11)
    gen, critic = Generator(), Critic()
    g_opt = torch.optim.RMSprop(gen.parameters(), lr=2e-3)
    c_opt = torch.optim.RMSprop(critic.parameters(), lr=2e-3)
    for step in range(120):
        for _ in range(CRITIC_STEPS):
            with torch.no_grad():
                fake = gen(BATCH)
            c_loss = critic(fake).mean() - critic(mixture(BATCH)).mean()
            c_opt.zero_grad()
            c_loss.backward()
            c_opt.step()
            with torch.no_grad():
                for p in critic.parameters():
                    p.clamp_(-CLIP, CLIP)
        g_loss = -critic(gen(BATCH)).mean()
        g_opt.zero_grad()
        g_loss.backward()
        g_opt.step()
        if step % 40 == 39:
            print(f"step {step}: critic {c_loss.item():.5f} generator {g_loss.item():.5f}")
    with torch.no_grad():
        samples = gen(1000)
    print(f"samples: mean {samples.mean():.3f} std {samples.std():.3f}")


if __name__ == "__main__":
    main()
