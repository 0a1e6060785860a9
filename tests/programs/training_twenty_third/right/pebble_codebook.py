"""VQ-VAE with an exponential-moving-average codebook (van den Oord et al., 2017, appendix A.1) on river profiles."""
import torch
from torch import nn
from torch.nn import functional as F

LENGTH, CODE_DIM, CODES = 24, 6, 32


class EMACodebook(nn.Module):
    def __init__(self, codes, dim, decay=0.97, eps=1e-5):
        super().__init__()
        self.decay, self.eps = decay, eps
        embedding = torch.randn(codes, dim)
        self.register_buffer("embedding", embedding)
        self.register_buffer("counts", torch.ones(codes))
        self.register_buffer("sums", embedding.clone())

    @torch.no_grad()
    def update(self, z, index):
        onehot = F.one_hot(index, len(self.embedding)).to(z.dtype)
        self.counts.mul_(self.decay).add_(onehot.sum(0), alpha=1 - self.decay)
        self.sums.mul_(self.decay).add_(onehot.t() @ z, alpha=1 - self.decay)
        total = self.counts.sum()
        smoothed = (self.counts + self.eps) / (total + len(self.counts) * self.eps) * total
        self.embedding.copy_(self.sums / smoothed.unsqueeze(1))

    @torch.no_grad()
    def revive(self, z, threshold=0.2):
        """Moves codes that nobody uses onto encodings of the current batch."""
        dead = self.counts < threshold
        n = int(dead.sum())
        if n:
            fresh = z[torch.randint(0, len(z), (n,))]
            self.embedding[dead], self.sums[dead], self.counts[dead] = fresh, fresh, 1.0

    def forward(self, z):
        with torch.no_grad():
            index = torch.cdist(z, self.embedding).argmin(dim=1)
        q = self.embedding[index]
        commitment = F.mse_loss(z, q)
        if self.training:
            self.update(z, index)
            self.revive(z)
        return z + (q - z).detach(), commitment, index


class VQVAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(LENGTH, 64), nn.ReLU(), nn.Linear(64, 2 * CODE_DIM))
        self.codebook = EMACodebook(CODES, CODE_DIM)
        self.decoder = nn.Sequential(nn.Linear(2 * CODE_DIM, 64), nn.ReLU(), nn.Linear(64, LENGTH))

    def forward(self, x):
        z = self.encoder(x).view(-1, CODE_DIM)  # two codes for each profile
        q, commitment, index = self.codebook(z)
        return self.decoder(q.view(len(x), -1)), commitment, index.view(len(x), -1)


def profiles(n, g):
    t = torch.linspace(0, 1, LENGTH)
    kind = torch.randint(0, 6, (n, 1), generator=g).float()
    phase = torch.randint(0, 4, (n, 1), generator=g).float()
    clean = torch.sin((1 + kind) * 3.0 * t + phase * 1.5) * (1 - 0.1 * kind)
    return clean + 0.05 * torch.randn(n, LENGTH, generator=g)


def train(model, data, epochs=25, batch=100, beta=0.25):
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(epochs):
        total = 0.0
        for idx in torch.randperm(len(data)).split(batch):
            x = data[idx]
            out, commitment, _ = model(x)
            loss = F.mse_loss(out, x) + beta * commitment
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(idx)
        if epoch % 5 == 0 or epoch == epochs - 1:
            print(f"epoch {epoch:2d}  loss {total / len(data):.4f}")


if __name__ == "__main__":
    torch.manual_seed(13)
    g = torch.Generator().manual_seed(14)
    model = VQVAE()
    train(model, profiles(3000, g))
    model.eval()
    held_out = profiles(500, g)
    with torch.no_grad():
        out, _, index = model(held_out)
    error = F.mse_loss(out, held_out).item()
    print(f"held-out error {error:.4f} (variance {held_out.var().item():.4f}), codes in use {index.unique().numel()}")
