"""Variational autoencoder of noisy absorption spectra; few training spectra, the epoch with the best validation bound is kept."""
import torch
import torch.nn.functional as F
from torch import nn

CHANNELS = 60


def spectra(n, generator):
    axis = torch.linspace(0, 1, CHANNELS)
    centre = 0.15 + 0.7 * torch.rand(n, 2, 1, generator=generator)
    width = 0.03 + 0.05 * torch.rand(n, 2, 1, generator=generator)
    height = 0.5 + torch.rand(n, 2, 1, generator=generator)
    lines = height * torch.exp(-0.5 * ((axis - centre) / width) ** 2)
    return lines.sum(dim=1) + 0.1 * torch.randn(n, CHANNELS, generator=generator)


class SpectraVAE(nn.Module):
    def __init__(self, latent=8, hidden=96, noise=0.15):
        super().__init__()
        self.noise = noise
        self.encoder = nn.Sequential(
            nn.Linear(CHANNELS, hidden), nn.ELU(),
            nn.Linear(hidden, hidden), nn.ELU(),
        )
        self.mean = nn.Linear(hidden, latent)
        self.log_var = nn.Linear(hidden, latent)
        self.decoder = nn.Sequential(
            nn.Linear(latent, hidden), nn.ELU(),
            nn.Linear(hidden, hidden), nn.ELU(),
            nn.Linear(hidden, CHANNELS),
        )

    def forward(self, x, eps=None):
        h = self.encoder(x)
        mean, log_var = self.mean(h), self.log_var(h).clamp(-8, 8)
        if eps is None:
            eps = torch.randn_like(mean)
        z = mean + (0.5 * log_var).exp() * eps
        return self.decoder(z), mean, log_var

    def negative_elbo(self, x, eps=None):
        output, mean, log_var = self(x, eps)
        recon = F.mse_loss(output, x, reduction="none").sum(dim=1) / (2 * self.noise ** 2)
        kl = 0.5 * (mean.pow(2) + log_var.exp() - 1 - log_var).sum(dim=1)
        return (recon + kl).mean()


class BestKeeper:
    def __init__(self, patience):
        self.patience = patience
        self.value = float("inf")
        self.epoch = 0
        self.state = None

    def update(self, epoch, value, model):
        if value < self.value:
            self.value = value
            self.epoch = epoch
            self.state = model.state_dict().copy()
        return epoch - self.epoch >= self.patience

    def restore(self, model):
        model.load_state_dict(self.state)


@torch.no_grad()
def validate(model, x, eps):
    model.eval()
    value = model.negative_elbo(x, eps).item()
    model.train()
    return value


def main():
    torch.manual_seed(8)
    generator = torch.Generator().manual_seed(1)
    train = spectra(96, generator)
    valid, test = spectra(200, generator), spectra(200, generator)
    eps = torch.randn(200, 8, generator=generator)
    model = SpectraVAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    keeper = BestKeeper(patience=40)
    for epoch in range(1, 161):
        for index in torch.randperm(len(train)).split(32):
            loss = model.negative_elbo(train[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        value = validate(model, valid, eps)
        if epoch % 20 == 0:
            print(f"epoch {epoch:3d}  train {loss.item():.2f}  valid {value:.2f}")
        if keeper.update(epoch, value, model):
            print(f"no improvement since epoch {keeper.epoch}, stopping at {epoch}")
            break
    keeper.restore(model)
    print(f"best validation bound {keeper.value:.2f} at epoch {keeper.epoch}")
    print(f"test bound of the kept model {validate(model, test, eps):.2f}")
    return model, keeper, valid, eps


if __name__ == "__main__":
    model, keeper, valid, eps = main()
