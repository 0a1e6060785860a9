"""Compresses spectra of minerals to a few discrete codes (vector-quantised autoencoder, codebook by moving averages)."""
import torch
from torch import nn
import torch.nn.functional as F

BINS = 48
WIDTH = 8


class Codebook(nn.Module):
    """Van den Oord et al. 2017, appendix A.1."""

    def __init__(self, codes=16, width=WIDTH, decay=0.9, commitment=0.25, eps=1e-5):
        super().__init__()
        self.decay, self.commitment, self.eps = decay, commitment, eps
        self.register_buffer("vectors", torch.randn(codes, width))
        self.register_buffer("counts", torch.ones(codes))
        self.register_buffer("sums", self.vectors.clone())
        self.register_buffer("started", torch.tensor(False))

    @torch.no_grad()
    def start(self, z):
        rows = torch.randperm(len(z))[: len(self.vectors)]
        self.vectors.copy_(z[rows])
        self.sums.copy_(z[rows])
        self.started.fill_(True)

    @torch.no_grad()
    def nearest(self, z):
        return torch.cdist(z, self.vectors).argmin(dim=1)

    @torch.no_grad()
    def update(self, z, index):
        one_hot = F.one_hot(index, len(self.vectors)).to(z.dtype)
        self.counts.mul_(self.decay).add_(one_hot.sum(dim=0), alpha=1 - self.decay)
        self.sums.mul_(self.decay).add_(one_hot.t() @ z, alpha=1 - self.decay)
        total = self.counts.sum()
        smooth = (self.counts + self.eps) / (total + len(self.counts) * self.eps) * total
        self.vectors.copy_(self.sums / smooth.unsqueeze(1))

    def forward(self, z):
        if self.training and not self.started:
            self.start(z)
        index = self.nearest(z)
        quantised = F.embedding(index, self.vectors)
        if self.training:
            self.update(z, index)
        commitment = self.commitment * F.mse_loss(z, quantised)
        return z + (quantised - z).detach(), commitment, index


class SpectrumCoder(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(BINS, hidden), nn.ReLU(), nn.Linear(hidden, WIDTH))
        self.codebook = Codebook()
        self.decoder = nn.Sequential(nn.Linear(WIDTH, hidden), nn.ReLU(), nn.Linear(hidden, BINS))

    def forward(self, spectra):
        code, commitment, index = self.codebook(self.encoder(spectra))
        return self.decoder(code), commitment, index


def make_spectra(count, minerals):
    kind = torch.randint(0, len(minerals), (count,))
    strength = 0.8 + 0.4 * torch.rand(count, 1)
    return strength * minerals[kind] + 0.05 * torch.randn(count, BINS)


def main():
    torch.manual_seed(17)
    axis = torch.linspace(0, 1, BINS)
    lines = torch.rand(10, 4, 1)
    minerals = torch.exp(-((axis - lines) / 0.04).pow(2)).sum(dim=1)
    train_set, test_set = make_spectra(1000, minerals), make_spectra(300, minerals)

    model = SpectrumCoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(200):
        batch = train_set[torch.randint(0, len(train_set), (64,))]
        rebuilt, commitment, index = model(batch)
        loss = F.mse_loss(rebuilt, batch) + commitment
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (step + 1) % 50 == 0:
            print(f"step {step + 1:3d}  loss {loss.item():.4f}  codes in batch {index.unique().numel()}")

    model.eval()
    with torch.no_grad():
        rebuilt, _, index = model(test_set)
        error = F.mse_loss(rebuilt, test_set).item()
    share = torch.bincount(index, minlength=16).float() / len(index)
    perplexity = torch.exp(-(share * (share + 1e-10).log()).sum()).item()
    print(f"test error {error:.4f} (variance {test_set.var().item():.4f})  perplexity {perplexity:.1f}")


if __name__ == "__main__":
    main()
