import torch
from torch import nn
from torch.distributions import Independent, Normal


class Posterior(nn.Module):
    def __init__(self, inputs, latent):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, 32), nn.SiLU(), nn.Linear(32, 2 * latent))

    def forward(self, x):
        loc, raw = self.body(x).chunk(2, dim=-1)
        return loc, nn.functional.softplus(raw) + 1e-3


def gaussian(loc, scale):
    return Independent(Normal(loc, scale), 1)


class GeneVAE(nn.Module):
    def __init__(self, genes=30, latent=4):
        super().__init__()
        self.posterior = Posterior(genes, latent)
        self.decoder = nn.Sequential(nn.Linear(latent, 32), nn.SiLU(), nn.Linear(32, genes))
        self.register_buffer("zero", torch.zeros(latent))
        self.register_buffer("one", torch.ones(latent))

    def bound(self, x):
        loc, scale = self.posterior(x)
        z = gaussian(loc, scale).rsample()
        log_q = gaussian(loc.detach(), scale.detach()).log_prob(z)
        log_p = gaussian(self.zero, self.one).log_prob(z)
        log_x = gaussian(self.decoder(z), 0.3 * torch.ones_like(x)).log_prob(x)
        return (log_x + log_p - log_q).mean()

    @torch.no_grad()
    def embed(self, x, draws=4):
        loc, scale = self.posterior(x)
        return Normal(loc, scale).sample((draws,)).mean(0)


def expression(n, g):
    programs = torch.randn(3, 30, generator=g)
    return torch.tanh(torch.randn(n, 3, generator=g) @ programs) + 0.1 * torch.randn(n, 30, generator=g)


def fit(model, data, steps=120):
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    g = torch.Generator().manual_seed(2)
    for step in range(steps):
        loss = -model.bound(data[torch.randint(0, len(data), (64,), generator=g)])
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 50.0)
        opt.step()
        if step % 30 == 29:
            spread = model.embed(data).std(0).mean()
            print(f"{step + 1} bound {-loss.item():.2f} embedding spread {spread:.3f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    data = expression(400, torch.Generator().manual_seed(5))
    fit(GeneVAE(), data)
