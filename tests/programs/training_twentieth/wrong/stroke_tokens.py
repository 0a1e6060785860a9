"""Discrete tokens for pen strokes: a convolutional VQ-VAE (van den Oord et al., 2017) with usage reset of the codes.

Each stroke is a smooth 32-point curve with two channels; it becomes eight tokens out of a codebook of 32.
"""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(21)
torch.set_num_threads(1)

CODES, WIDTH = 32, 8


def strokes(n, points=32):
    t = torch.linspace(0, 1, points)
    kind = torch.randint(1, 4, (n, 2, 1)).float()
    phase = torch.rand(n, 2, 1) * 6.2832
    size = 0.5 + torch.rand(n, 2, 1)
    return size * torch.sin(6.2832 * kind * t + phase) + 0.02 * torch.randn(n, 2, points)


class Codebook(nn.Module):
    def __init__(self, codes, width):
        super().__init__()
        self.table = nn.Embedding(codes, width)
        nn.init.uniform_(self.table.weight, -1.0, 1.0)
        self.register_buffer("used", torch.zeros(codes))

    def nearest(self, z):
        """z: (batch, width, length) -> (batch, length)"""
        flat = z.permute(0, 2, 1).reshape(-1, z.shape[1])
        return torch.cdist(flat, self.table.weight).argmin(1).view(z.shape[0], z.shape[2])

    def lookup(self, ids):
        return self.table(ids).permute(0, 2, 1)

    def forward(self, z):
        ids = self.nearest(z)
        code = self.lookup(ids)
        codebook_loss = F.mse_loss(code, z.detach())
        commitment = F.mse_loss(z, code.detach())
        if self.training:
            self.used += torch.bincount(ids.flatten(), minlength=len(self.used))
        # straight-through estimator
        out = code + (z - code).detach()
        return out, ids, codebook_loss + 0.25 * commitment

    @torch.no_grad()
    def reset_unused(self, z):
        flat = z.permute(0, 2, 1).reshape(-1, z.shape[1])
        idle = (self.used == 0).nonzero().flatten()
        self.table.weight[idle] = flat[torch.randint(0, len(flat), (len(idle),))]
        self.used.zero_()


class Tokenizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(2, 32, 4, 2, 1), nn.GELU(), nn.Conv1d(32, 32, 4, 2, 1), nn.GELU(), nn.Conv1d(32, WIDTH, 1))
        self.codebook = Codebook(CODES, WIDTH)
        self.decoder = nn.Sequential(
            nn.Conv1d(WIDTH, 32, 3, padding=1), nn.GELU(), nn.ConvTranspose1d(32, 32, 4, 2, 1), nn.GELU(),
            nn.ConvTranspose1d(32, 2, 4, 2, 1))

    def forward(self, x):
        latent, ids, aux = self.codebook(self.encoder(x))
        return self.decoder(latent), ids, aux

    @torch.no_grad()
    def encode(self, x):
        return self.codebook.nearest(self.encoder(x))

    @torch.no_grad()
    def decode(self, ids):
        return self.decoder(self.codebook.lookup(ids))


def main():
    model = Tokenizer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for step in range(1, 501):
        batch = strokes(64)
        recon, _, aux = model(batch)
        loss = F.mse_loss(recon, batch) + aux
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 50 == 0 and step <= 300:
            with torch.no_grad():
                model.codebook.reset_unused(model.encoder(batch))
        if step % 125 == 0:
            print(f"step {step:4d}  reconstruction {F.mse_loss(recon, batch).item():.4f}  vq {aux.item():.4f}")

    model.eval()
    test = strokes(500)
    ids = model.encode(test)
    error = F.mse_loss(model.decode(ids), test).item()
    print(f"from tokens: error {error:.4f} (variance {test.var().item():.3f}), {ids.unique().numel()} codes in use")
    return model, error


if __name__ == "__main__":
    model, error = main()
