"""GAN on 8x8 blob images with simultaneous updates: one pass through both networks serves the two players."""
import torch
import torch.nn as nn
import torch.nn.functional as F

LATENT, BATCH, STEPS = 16, 64, 500


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(LATENT, 96), nn.BatchNorm1d(96), nn.ReLU(),
                                 nn.Linear(96, 96), nn.BatchNorm1d(96), nn.ReLU(), nn.Linear(96, 64), nn.Tanh())

    def forward(self, z):
        return self.net(z).view(-1, 1, 8, 8)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(1, 32, 3, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(32, 64, 3, 2, 1),
                                 nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(64 * 4, 1))

    def forward(self, x):
        return self.net(x).squeeze(1)


def blobs(n, gen):
    """A Gaussian bump with random centre and width, in [-1, 1]."""
    y, x = torch.meshgrid(torch.linspace(-1, 1, 8), torch.linspace(-1, 1, 8), indexing="ij")
    cx, cy = (torch.rand(2, n, 1, 1, generator=gen) - 0.5) * 1.2
    width = 0.25 + 0.2 * torch.rand(n, 1, 1, generator=gen)
    return (2 * torch.exp(-((x - cx) ** 2 + (y - cy) ** 2) / (2 * width ** 2)) - 1).unsqueeze(1)


class Game:
    def __init__(self, lr=1e-3):
        self.g, self.d = Generator(), Discriminator()
        self.g_params, self.d_params = list(self.g.parameters()), list(self.d.parameters())
        self.g_opt = torch.optim.Adam(self.g_params, lr=lr, betas=(0.5, 0.99))
        self.d_opt = torch.optim.Adam(self.d_params, lr=lr, betas=(0.5, 0.99))

    def gradients(self, real, z):
        """Losses and gradients of both players at the current weights."""
        fake = self.g(z)
        score_real, score_fake = self.d(torch.cat([real, fake])).split([len(real), len(fake)])
        d_loss = F.softplus(-score_real).mean() + F.softplus(score_fake).mean()
        g_loss = F.softplus(-score_fake).mean()
        d_grads = torch.autograd.grad(d_loss, self.d_params, retain_graph=True)
        g_grads = torch.autograd.grad(g_loss, self.g_params)
        return d_loss.detach(), g_loss.detach(), d_grads, g_grads

    def step(self, real, z):
        d_loss, g_loss, d_grads, g_grads = self.gradients(real, z)
        for p, g in zip(self.d_params + self.g_params, d_grads + g_grads):
            p.grad = g
        self.d_opt.step()
        self.g_opt.step()
        return d_loss.item(), g_loss.item()

    @torch.no_grad()
    def sample(self, n, gen):
        self.g.eval()
        x = self.g(torch.randn(n, LATENT, generator=gen))
        self.g.train()
        return x


def moments(x):
    """Mean brightness and centre-of-mass spread, to compare generated and true images."""
    w = (x.squeeze(1) + 1).clamp(min=0) + 1e-6
    axis = torch.linspace(-1, 1, 8)
    total = w.sum((1, 2))
    cx, cy = (w.sum(1) * axis).sum(1) / total, (w.sum(2) * axis).sum(1) / total
    return x.mean().item(), cx.std().item(), cy.std().item()


def train():
    gen = torch.Generator().manual_seed(1)
    data = blobs(2048, gen)
    game = Game()
    for step in range(1, STEPS + 1):
        real = data[torch.randint(0, len(data), (BATCH,), generator=gen)]
        d_loss, g_loss = game.step(real, torch.randn(BATCH, LATENT, generator=gen))
        if step % 100 == 0:
            mean, sx, sy = moments(game.sample(512, gen))
            print(f"step {step} d {d_loss:.3f} g {g_loss:.3f} mean {mean:.3f} spread {sx:.3f} {sy:.3f}")
    print("data: mean %.3f spread %.3f %.3f" % moments(data))
    return game


if __name__ == "__main__":
    torch.manual_seed(0)
    game = train()
