"""Motif table for bedside vital-sign windows: an autoencoder whose code vectors follow running averages of the encodings."""
import torch
import torch.nn as nn
import torch.nn.functional as F

LENGTH, CHANNELS, PIECE = 64, 3, 8


def vitals(n, gen):
    t = torch.arange(LENGTH) / LENGTH
    level = torch.randn(n, CHANNELS, 1, generator=gen)
    slope = torch.randn(n, CHANNELS, 1, generator=gen)
    x = 0.5 * level + slope * (t - 0.5)
    at = torch.randint(8, LENGTH - 16, (n,), generator=gen)
    for i, a in enumerate(at.tolist()):
        x[i, 0, a:a + 12] += torch.hann_window(12) * 2.0
        x[i, 1, a:a + 12] -= torch.hann_window(12) * 1.5
    return x + 0.05 * torch.randn(x.shape, generator=gen)


class RunningCodes(nn.Module):
    def __init__(self, codes, dim, decay=0.95, beta=0.25):
        super().__init__()
        self.decay, self.beta = decay, beta
        self.register_buffer("table", torch.randn(codes, dim))
        self.register_buffer("count", torch.ones(codes))
        self.register_buffer("total", self.table.clone())

    @torch.no_grad()
    def _follow(self, flat, index):
        hot = F.one_hot(index, len(self.table)).to(flat.dtype)
        self.count.mul_(self.decay).add_(hot.sum(0), alpha=1 - self.decay)
        self.total.mul_(self.decay).add_(hot.t() @ flat, alpha=1 - self.decay)
        quiet = self.count < 0.3
        if quiet.any():
            pick = torch.randint(0, len(flat), (int(quiet.sum()),))
            self.total[quiet] = flat[pick]
            self.count[quiet] = 1.0
        self.table.copy_(self.total / self.count.unsqueeze(1))

    def forward(self, flat):
        index = torch.cdist(flat.detach(), self.table).argmin(dim=1)
        code = self.table[index]
        commit = self.beta * F.mse_loss(flat, code)
        if self.training:
            self._follow(flat.detach(), index)
        return flat + (code - flat).detach(), commit, index


class MotifModel(nn.Module):
    def __init__(self, dim=10, codes=48):
        super().__init__()
        self.encode = nn.Sequential(
            nn.Linear(CHANNELS * PIECE, 48), nn.ReLU(), nn.Linear(48, dim), nn.LayerNorm(dim)
        )
        self.codes = RunningCodes(codes, dim)
        self.decode = nn.Sequential(nn.Linear(dim, 48), nn.ReLU(), nn.Linear(48, CHANNELS * PIECE))

    def forward(self, x):
        pieces = x.unfold(2, PIECE, PIECE).permute(0, 2, 1, 3).reshape(-1, CHANNELS * PIECE)
        z, commit, index = self.codes(self.encode(pieces))
        return F.mse_loss(self.decode(z), pieces), commit, index


def main(epochs=12):
    torch.manual_seed(23)
    gen = torch.Generator().manual_seed(23)
    train, held = vitals(512, gen), vitals(128, gen)
    model = MotifModel()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(train), generator=gen).split(32):
            recon, commit, _ = model(train[idx])
            opt.zero_grad()
            (recon + commit).backward()
            opt.step()
            total += recon.item() * len(idx)
        if epoch % 3 == 2:
            print(f"epoch {epoch} reconstruction {total / len(train):.4f}")
    model.eval()
    with torch.no_grad():
        err, _, index = model(held)
    print(f"held-out error {err.item():.4f} of variance {held.var():.3f}, motifs used {index.unique().numel()}")
    return model, err.item()


if __name__ == "__main__":
    model, err = main()
