"""Vector quantisation with a codebook that follows cluster means (a buffer, not trained by the optimizer)."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3)
torch.set_num_threads(1)


def chords(n):
    notes = torch.eye(12)
    root = torch.randint(0, 12, (n,))
    third = torch.where(torch.rand(n) < 0.5, 3, 4)
    chroma = notes[root] + notes[(root + third) % 12] + notes[(root + 7) % 12]
    return chroma * (0.8 + 0.2 * torch.rand(n, 12)) + 0.1 * torch.randn(n, 12)


class EMAQuantizer(nn.Module):
    def __init__(self, codes, dim, decay=0.95):
        super().__init__()
        self.decay = decay
        codebook = torch.randn(codes, dim)
        self.register_buffer("codebook", codebook)
        self.register_buffer("counts", torch.ones(codes))
        self.register_buffer("sums", codebook.clone())

    @torch.no_grad()
    def follow(self, z, index):
        chosen = F.one_hot(index, len(self.codebook)).float()
        self.counts.mul_(self.decay).add_(chosen.sum(0), alpha=1 - self.decay)
        self.sums.mul_(self.decay).add_(chosen.T @ z, alpha=1 - self.decay)
        self.codebook.copy_(self.sums / self.counts.clamp(min=1e-3)[:, None])
        dead = self.counts < 0.05
        if dead.any():
            fresh = z[torch.randint(0, len(z), (int(dead.sum()),))]
            self.codebook[dead] = fresh
            self.sums[dead] = fresh
            self.counts[dead] = 1.0

    def forward(self, z):
        index = torch.cdist(z.detach(), self.codebook).argmin(1)
        quantized = self.codebook[index]
        commitment = F.mse_loss(z, quantized)
        if self.training:
            self.follow(z.detach(), index)
        return z + (quantized - z).detach(), commitment, index


encoder = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 6))
decoder = nn.Sequential(nn.Linear(6, 48), nn.ReLU(), nn.Linear(48, 12))
quantizer = EMAQuantizer(32, 6)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=3e-3)
data, test = chords(1280), chords(600)

for epoch in range(16):
    quantizer.train()
    for x in data[torch.randperm(len(data))].split(64):
        z, commitment, index = quantizer(encoder(x))
        loss = F.mse_loss(decoder(z), x) + 0.25 * commitment
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 5 == 0:
        print(f"epoch {epoch:2d} loss {loss.item():.4f} codes {len(index.unique())}")

quantizer.eval()
with torch.no_grad():
    z, _, index = quantizer(encoder(test))
    error = F.mse_loss(decoder(z), test).item()
print(f"reconstruction error {error:.4f} of variance {test.var().item():.4f}, codes in use {len(index.unique())}")
