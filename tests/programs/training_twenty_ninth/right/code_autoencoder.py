"""A vector quantised autoencoder (VQ-VAE) whose codebook follows exponential moving averages."""
import torch
import torch.nn.functional as F
from torch import nn


def waves(count, length=16):
    """Short waves of three frequencies and four phases, with noise."""
    kind = torch.randint(0, 12, (count,))
    frequency = 1.0 + (kind % 3).float()
    phase = (kind // 3).float() * torch.pi / 2
    t = torch.linspace(0, 2 * torch.pi, length)
    clean = torch.sin(frequency[:, None] * t + phase[:, None])
    return clean + 0.1 * torch.randn(count, length)


class MovingCodebook(nn.Module):
    """Codes are cluster means of the encoder's outputs (van den Oord et al. 2017, appendix A.1)."""

    def __init__(self, codes, dim, decay=0.95, eps=1e-5):
        super().__init__()
        self.decay = decay
        self.eps = eps
        start = torch.randn(codes, dim)
        self.register_buffer("codes", start)
        self.register_buffer("sums", start.clone())
        self.register_buffer("counts", torch.ones(codes))

    def lookup(self, z):
        return torch.cdist(z.detach(), self.codes).argmin(dim=1)

    @torch.no_grad()
    def follow(self, z, index):
        hot = F.one_hot(index, len(self.codes)).to(z)
        self.counts.mul_(self.decay).add_(hot.sum(dim=0), alpha=1 - self.decay)
        self.sums.mul_(self.decay).add_(hot.t() @ z, alpha=1 - self.decay)
        total = self.counts.sum()
        smooth = (self.counts + self.eps) / (total + len(self.codes) * self.eps) * total
        self.codes.copy_(self.sums / smooth.unsqueeze(1))

    @torch.no_grad()
    def revive(self, z, floor=0.1):
        idle = self.counts < floor
        if idle.any():
            fresh = z[torch.randint(0, len(z), (int(idle.sum()),))]
            self.codes[idle] = fresh
            self.sums[idle] = fresh
            self.counts[idle] = 1.0

    def forward(self, z):
        index = self.lookup(z)
        quantised = self.codes[index]
        if self.training:
            self.follow(z, index)
            self.revive(z)
        commitment = F.mse_loss(z, quantised.detach())
        return z + (quantised - z).detach(), commitment, index


class QuantisedAutoencoder(nn.Module):
    def __init__(self, length=16, dim=4, width=48, codes=16):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(length, width), nn.ReLU(), nn.Linear(width, dim))
        self.codebook = MovingCodebook(codes, dim)
        self.decoder = nn.Sequential(nn.Linear(dim, width), nn.ReLU(), nn.Linear(width, length))

    def forward(self, x):
        quantised, commitment, index = self.codebook(self.encoder(x))
        return self.decoder(quantised), commitment, index


@torch.no_grad()
def evaluate(model, x):
    model.eval()
    rebuilt, _, index = model(x)
    model.train()
    usage = torch.bincount(index, minlength=len(model.codebook.codes)).float() / len(x)
    perplexity = torch.exp(-(usage * (usage + 1e-10).log()).sum())
    return F.mse_loss(rebuilt, x).item(), perplexity.item()


def main():
    torch.manual_seed(6)
    torch.set_num_threads(1)
    train, test = waves(1000), waves(300)
    model = QuantisedAutoencoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=6e-3)
    for step in range(241):
        x = train[torch.randint(0, len(train), (64,))]
        rebuilt, commitment, _ = model(x)
        loss = F.mse_loss(rebuilt, x) + 0.25 * commitment
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 60 == 0:
            error, perplexity = evaluate(model, test)
            print(f"step {step:3d}  loss {loss.item():.4f}  test error {error:.4f}  perplexity {perplexity:.1f}")
    return model, test, evaluate(model, test)


if __name__ == "__main__":
    model, test, scores = main()
