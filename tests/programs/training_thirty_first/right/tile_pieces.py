"""Discrete codes for small tiles: an autoencoder whose codebook follows moving averages of the encoder's outputs."""
import torch
import torch.nn as nn
import torch.nn.functional as F

SIDE = 6
CODES = 16
DIM = 4


def make_tiles(count):
    """Tiles with a bar or a cross at one of a few positions."""
    tiles = torch.zeros(count, SIDE, SIDE)
    kind = torch.randint(3, (count,))
    place = torch.randint(1, SIDE - 1, (count,))
    rows = torch.arange(count)
    flat, tall = kind != 1, kind != 0
    tiles[rows[flat], place[flat], :] = 1.0
    tiles[rows[tall], :, place[tall]] = 1.0
    return (tiles + 0.05 * torch.randn_like(tiles)).flatten(1)


class Codebook(nn.Module):
    def __init__(self, decay=0.95):
        super().__init__()
        self.decay = decay
        codes = torch.randn(CODES, DIM)
        self.register_buffer("codes", codes)
        self.register_buffer("sums", codes.clone())
        self.register_buffer("counts", torch.ones(CODES))

    def forward(self, z):
        with torch.no_grad():
            picks = torch.cdist(z, self.codes).argmin(dim=1)
            quantized = self.codes[picks]
            if self.training:
                self.follow(z, picks)
        commitment = F.mse_loss(z, quantized)
        return z + (quantized - z).detach(), commitment, picks

    @torch.no_grad()
    def follow(self, z, picks):
        member = F.one_hot(picks, CODES).to(z.dtype)
        self.counts.mul_(self.decay).add_(member.sum(0), alpha=1 - self.decay)
        self.sums.mul_(self.decay).add_(member.t() @ z, alpha=1 - self.decay)
        self.codes.copy_(self.sums / self.counts.clamp(min=1e-5).unsqueeze(1))
        unused = self.counts < 0.1
        if unused.any():
            fresh = z[torch.randint(len(z), (int(unused.sum()),))]
            self.codes[unused] = fresh
            self.sums[unused] = fresh
            self.counts[unused] = 1.0


class TileModel(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(SIDE * SIDE, width), nn.ReLU(), nn.Linear(width, DIM))
        self.codebook = Codebook()
        self.decoder = nn.Sequential(nn.Linear(DIM, width), nn.ReLU(), nn.Linear(width, SIDE * SIDE))

    def forward(self, x):
        quantized, commitment, picks = self.codebook(self.encoder(x))
        return self.decoder(quantized), commitment, picks


@torch.no_grad()
def evaluate(model, x):
    model.eval()
    output, _, picks = model(x)
    model.train()
    return F.mse_loss(output, x).item(), picks.unique().numel()


def train(model, x, steps, batch=128, weight=0.25):
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(1, steps + 1):
        tiles = x[torch.randint(len(x), (batch,))]
        output, commitment, _ = model(tiles)
        reconstruction = F.mse_loss(output, tiles)
        loss = reconstruction + weight * commitment
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 80 == 0:
            print(f"step {step:4d}  reconstruction {reconstruction.item():.4f}  commitment {commitment.item():.4f}")


def main():
    torch.manual_seed(4)
    x_train, x_test = make_tiles(3000), make_tiles(600)
    model = TileModel()
    before, _ = evaluate(model, x_test)
    train(model, x_train, steps=240)
    after, used = evaluate(model, x_test)
    print(f"test error {before:.4f} -> {after:.4f}  codes in use {used} of {CODES}")


if __name__ == "__main__":
    main()
