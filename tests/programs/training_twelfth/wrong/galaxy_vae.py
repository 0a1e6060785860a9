"""Variational autoencoder for small galaxy images (elliptical profiles with a random tilt, size and offset); the latent
code is then used for a linear read-out of the tilt and the size."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(29)

SIDE, LATENT = 20, 6
PIXEL_STD = 0.1  # of the Gaussian likelihood


def make_galaxies(n, gen):
    yy, xx = torch.meshgrid(torch.linspace(-1, 1, SIDE), torch.linspace(-1, 1, SIDE), indexing="ij")
    tilt = torch.rand(n, 1, 1, generator=gen) * 3.1416
    size = 0.2 + 0.25 * torch.rand(n, 1, 1, generator=gen)
    axis_ratio = 0.3 + 0.3 * torch.rand(n, 1, 1, generator=gen)
    dx = 0.25 * (torch.rand(n, 1, 1, generator=gen) - 0.5)
    dy = 0.25 * (torch.rand(n, 1, 1, generator=gen) - 0.5)
    u = (xx - dx) * tilt.cos() + (yy - dy) * tilt.sin()
    v = -(xx - dx) * tilt.sin() + (yy - dy) * tilt.cos()
    image = torch.exp(-((u / size) ** 2 + (v / (axis_ratio * size)) ** 2))
    image = (image + 0.03 * torch.randn(n, SIDE, SIDE, generator=gen)).clamp(0, 1)
    traits = torch.stack([(2 * tilt).cos().flatten(), (2 * tilt).sin().flatten(), size.flatten()], dim=1)
    return image.flatten(1), traits


class GalaxyVAE(nn.Module):
    def __init__(self, hidden=128):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(SIDE * SIDE, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
        )
        self.to_mu = nn.Linear(hidden, LATENT)
        self.to_logvar = nn.Linear(hidden, LATENT)
        self.decoder = nn.Sequential(
            nn.Linear(LATENT, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
            nn.Linear(hidden, SIDE * SIDE), nn.Sigmoid(),
        )

    def encode(self, x):
        h = self.encoder(x)
        return self.to_mu(h), self.to_logvar(h)

    def forward(self, x):
        mu, logvar = self.encode(x)
        z = mu + torch.exp(0.5 * logvar) * torch.randn_like(mu)
        return self.decoder(z), mu, logvar


def elbo_loss(output, x, mu, logvar):
    recon = F.mse_loss(output, x) / (2 * PIXEL_STD ** 2)
    kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(dim=1).mean()
    return recon + kl, recon, kl


def readout_r2(model, x, traits, x_test, traits_test):
    """Ridge regression from the latent mean to the traits."""
    model.eval()
    with torch.no_grad():
        z, z_test = model.encode(x)[0], model.encode(x_test)[0]
    feats = lambda c: torch.cat([c, c ** 2, (c[:, :, None] * c[:, None, :]).flatten(1), torch.ones(len(c), 1)], dim=1)
    a, b = feats(z).double(), feats(z_test).double()
    w = torch.linalg.solve(a.T @ a + 1e-3 * torch.eye(a.shape[1]).double(), a.T @ traits.double())
    residual = ((b @ w - traits_test) ** 2).mean(0)
    return (1 - residual / traits_test.var(0, unbiased=False)).mean().item()


def main(epochs=25, batch_size=64):
    gen = torch.Generator().manual_seed(1)
    x, traits = make_galaxies(2000, gen)
    x_test, traits_test = make_galaxies(500, gen)
    model = GalaxyVAE()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        model.train()
        sums = torch.zeros(2)
        for idx in torch.randperm(len(x)).split(batch_size):
            output, mu, logvar = model(x[idx])
            loss, recon, kl = elbo_loss(output, x[idx], mu, logvar)
            opt.zero_grad()
            loss.backward()
            opt.step()
            sums += torch.stack([recon, kl]).detach() * len(idx)
        if epoch % 5 == 4:
            recon_avg, kl_avg = (sums / len(x)).tolist()
            print(f"epoch {epoch + 1:2d}  recon {recon_avg:.4f}  kl {kl_avg:.4f}")
    model.eval()
    with torch.no_grad():
        mu, _ = model.encode(x_test)
        error = (model.decoder(mu) - x_test).pow(2).mean().item()
    r2 = readout_r2(model, x, traits, x_test, traits_test)
    print(f"test pixel mse {error:.5f}  image variance {x_test.var(0).mean():.5f}  trait R2 {r2:.3f}")
    return model, x_test, error, r2


if __name__ == "__main__":
    model, x_test, error, r2 = main()
