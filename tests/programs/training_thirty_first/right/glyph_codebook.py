"""Vector-quantised autoencoder of small glyphs; the codebook follows moving averages of the codes.

van den Oord et al. 2017, appendix A.1: the codebook has no loss term, each entry moves to the
running mean of the encoder outputs that chose it.
"""
import torch
import torch.nn.functional as F
from torch import nn

SIDE, KINDS = 6, 10
STEPS, BATCH = 260, 64


def make_glyphs(generator):
    strokes = (torch.rand(KINDS, SIDE * SIDE, generator=generator) < 0.4).float()

    def draw(n):
        kind = torch.randint(0, KINDS, (n,), generator=generator)
        return strokes[kind] + 0.1 * torch.randn(n, SIDE * SIDE, generator=generator)

    return draw


class MovingCodebook(nn.Module):
    def __init__(self, entries, dim, decay=0.95, commitment=0.25, eps=1e-5):
        super().__init__()
        self.decay, self.commitment, self.eps = decay, commitment, eps
        self.register_buffer("entries", torch.randn(entries, dim))
        self.register_buffer("counts", torch.ones(entries))
        self.register_buffer("sums", self.entries.clone())
        self.register_buffer("started", torch.tensor(False))

    @torch.no_grad()
    def start_from(self, z):
        pick = torch.randperm(len(z))[:len(self.entries)]
        self.entries.copy_(z[pick])
        self.sums.copy_(z[pick])
        self.counts.fill_(1.0)
        self.started.fill_(True)

    @torch.no_grad()
    def follow(self, z, index):
        chosen = F.one_hot(index, len(self.entries)).type_as(z)
        self.counts.mul_(self.decay).add_(chosen.sum(0), alpha=1 - self.decay)
        self.sums.mul_(self.decay).add_(chosen.t() @ z, alpha=1 - self.decay)
        total = self.counts.sum()
        smoothed = (self.counts + self.eps) / (total + len(self.entries) * self.eps) * total
        self.entries.copy_(self.sums / smoothed.unsqueeze(1))

    def forward(self, z):
        if self.training and not self.started:
            self.start_from(z)
        with torch.no_grad():
            index = torch.cdist(z, self.entries).argmin(dim=1)
        code = F.embedding(index, self.entries)
        if self.training:
            self.follow(z, index)
        loss = self.commitment * F.mse_loss(z, code.detach())
        code = z + (code - z).detach()
        return code, index, loss


class GlyphModel(nn.Module):
    def __init__(self, dim=6, entries=20):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(SIDE * SIDE, 32), nn.ReLU(), nn.Linear(32, dim))
        self.codebook = MovingCodebook(entries, dim)
        self.decoder = nn.Sequential(nn.Linear(dim, 32), nn.ReLU(), nn.Linear(32, SIDE * SIDE))

    def forward(self, glyphs):
        code, index, commitment = self.codebook(self.encoder(glyphs))
        return self.decoder(code), index, commitment


@torch.no_grad()
def evaluate(model, glyphs):
    model.eval()
    rebuilt, index, _ = model(glyphs)
    model.train()
    return F.mse_loss(rebuilt, glyphs).item(), len(index.unique())


def main():
    torch.manual_seed(4)
    draw = make_glyphs(torch.Generator().manual_seed(40))
    test = draw(256)
    model = GlyphModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    for step in range(STEPS):
        glyphs = draw(BATCH)
        rebuilt, _, commitment = model(glyphs)
        loss = F.mse_loss(rebuilt, glyphs) + commitment
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 52 == 0 or step == STEPS - 1:
            error, used = evaluate(model, test)
            print(f"step {step:3d}  loss {loss.item():.4f}  test error {error:.4f}  codes in use {used}")
    return model, draw


if __name__ == "__main__":
    model, draw = main()
