"""Vector-quantised autoencoder for fresco patches, codebook maintained by exponential moving averages."""
import torch
import torch.nn.functional as F
from torch import nn


class EmaCodebook(nn.Module):
    def __init__(self, n_codes, dim, decay=0.95, eps=1e-5, min_usage=0.05):
        super().__init__()
        self.decay, self.eps, self.min_usage = decay, eps, min_usage
        codes = torch.randn(n_codes, dim)
        self.register_buffer("codes", codes)
        self.register_buffer("counts", torch.ones(n_codes))
        self.register_buffer("sums", codes.clone())

    def nearest(self, z):
        return torch.cdist(z, self.codes).argmin(dim=1)

    @torch.no_grad()
    def update(self, z, index):
        onehot = F.one_hot(index, len(self.codes)).type_as(z)
        self.counts.mul_(self.decay).add_(onehot.sum(0), alpha=1 - self.decay)
        self.sums.mul_(self.decay).add_(onehot.T @ z, alpha=1 - self.decay)
        # revive codes that nobody uses with random encodings from this batch
        idle = self.counts < self.min_usage
        if idle.any():
            picks = torch.randint(0, len(z), (int(idle.sum()),))
            self.counts[idle] = 1.0
            self.sums[idle] = z[picks]
        self.codes.copy_(self.sums / (self.counts + self.eps).unsqueeze(1))

    def forward(self, z):
        index = self.nearest(z)
        quantised = self.codes[index]
        if self.training:
            self.update(z.detach(), index)
        commitment = F.mse_loss(z, quantised.detach())
        return z + (quantised - z).detach(), commitment, index


class PatchCoder(nn.Module):
    def __init__(self, patch_dim=36, dim=8, n_codes=32):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(patch_dim, 48), nn.ReLU(), nn.Linear(48, dim))
        self.codebook = EmaCodebook(n_codes, dim)
        self.decoder = nn.Sequential(nn.Linear(dim, 48), nn.ReLU(), nn.Linear(48, patch_dim))

    def forward(self, patch):
        quantised, commitment, index = self.codebook(self.encoder(patch))
        return self.decoder(quantised), commitment, index


def make_patches(n, seed):
    """Patches come from twenty motifs with small variations."""
    motifs = torch.randn(20, 36, generator=torch.Generator().manual_seed(99))
    g = torch.Generator().manual_seed(seed)
    which = torch.randint(0, 20, (n,), generator=g)
    return motifs[which] + 0.15 * torch.randn(n, 36, generator=g)


@torch.no_grad()
def evaluate(model, patches):
    model.eval()
    output, _, index = model(patches)
    usage = torch.bincount(index, minlength=len(model.codebook.codes)).float()
    p = usage / usage.sum()
    perplexity = torch.exp(-(p * (p + 1e-10).log()).sum()).item()
    return F.mse_loss(output, patches).item(), perplexity


def main(epochs=20, batch=128, beta=0.25, seed=13):
    torch.manual_seed(seed)
    train, held_out = make_patches(2048, 1), make_patches(512, 2)
    model = PatchCoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(1, epochs + 1):
        model.train()
        for idx in torch.randperm(len(train)).split(batch):
            output, commitment, _ = model(train[idx])
            loss = F.mse_loss(output, train[idx]) + beta * commitment
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 5 == 0:
            mse, perplexity = evaluate(model, held_out)
            print(f"epoch {epoch:2d}  loss {loss.item():.4f}  held-out mse {mse:.4f}  code perplexity {perplexity:.1f}")
    return model, evaluate(model, held_out)


if __name__ == "__main__":
    model, (mse, perplexity) = main()
