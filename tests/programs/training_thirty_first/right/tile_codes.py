"""Compress pattern tiles to a few discrete codes; the codebook follows moving averages of its members."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(8)

SIDE = 6
PIXELS = SIDE * SIDE
MOTIFS = 12
ENTRIES = 16
CODE_WIDTH = 4
PARTS = 3
BATCH = 96
STEPS = 200
COMMITMENT = 0.25


class Codebook(nn.Module):
    def __init__(self, entries=ENTRIES, width=CODE_WIDTH, decay=0.97, eps=1e-5):
        super().__init__()
        codes = 0.5 * torch.randn(entries, width)
        self.register_buffer("codes", codes)
        self.register_buffer("counts", torch.ones(entries))
        self.register_buffer("sums", codes.clone())
        self.decay = decay
        self.eps = eps

    @torch.no_grad()
    def nearest(self, vectors):
        table = vectors.pow(2).sum(1, keepdim=True) - 2 * vectors @ self.codes.t() + self.codes.pow(2).sum(1)
        return table.argmin(dim=1)

    @torch.no_grad()
    def follow(self, vectors, index):
        members = F.one_hot(index, len(self.codes)).to(vectors.dtype)
        self.counts.mul_(self.decay).add_(members.sum(0), alpha=1 - self.decay)
        self.sums.mul_(self.decay).add_(members.t() @ vectors, alpha=1 - self.decay)
        total = self.counts.sum()
        smoothed = (self.counts + self.eps) / (total + len(self.counts) * self.eps) * total
        self.codes.copy_(self.sums / smoothed.unsqueeze(1))

    def forward(self, vectors):
        index = self.nearest(vectors)
        chosen = self.codes[index]
        if self.training:
            self.follow(vectors, index)
        commitment = F.mse_loss(vectors, chosen)
        passed = vectors + (chosen - vectors).detach()
        return passed, commitment, index


class TileCoder(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(PIXELS, width), nn.ReLU(), nn.Linear(width, PARTS * CODE_WIDTH))
        self.codebook = Codebook()
        self.decode = nn.Sequential(nn.Linear(PARTS * CODE_WIDTH, width), nn.ReLU(), nn.Linear(width, PIXELS))

    def forward(self, tiles):
        vectors = self.encode(tiles).reshape(-1, CODE_WIDTH)
        passed, commitment, index = self.codebook(vectors)
        return self.decode(passed.reshape(len(tiles), -1)), commitment, index


def make_tiles(count, motifs):
    """Each tile is one of a few motifs plus a second, fainter one."""
    first = torch.randint(0, MOTIFS, (count,))
    second = torch.randint(0, 4, (count,))
    return motifs[first] + 0.6 * motifs[second] + 0.05 * torch.randn(count, PIXELS)


@torch.no_grad()
def report(model, tiles):
    model.eval()
    rebuilt, _, index = model(tiles)
    share = torch.bincount(index, minlength=ENTRIES).float() / len(index)
    perplexity = torch.exp(-(share * (share + 1e-9).log()).sum()).item()
    model.train()
    return F.mse_loss(rebuilt, tiles).item(), perplexity


if __name__ == "__main__":
    motifs = torch.randn(MOTIFS, PIXELS)
    held_out = make_tiles(256, motifs)
    model = TileCoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    print("start  error %.4f  codes in use %.1f" % report(model, held_out))
    for step in range(STEPS):
        tiles = make_tiles(BATCH, motifs)
        rebuilt, commitment, _ = model(tiles)
        loss = F.mse_loss(rebuilt, tiles) + COMMITMENT * commitment
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if (step + 1) % 50 == 0:
            print(f"step {step + 1:4d}  loss {loss.item():.4f}  commitment {commitment.item():.4f}")
    print("end    error %.4f  codes in use %.1f" % report(model, held_out))
