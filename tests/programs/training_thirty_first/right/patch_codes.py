"""Learn a codebook for texture patches with a vector-quantized autoencoder whose codes follow moving averages."""
import torch
import torch.nn.functional as F
from torch import nn

SIDE = 6
PIXELS = SIDE * SIDE


def make_patches(count, generator, kinds=8):
    axis = torch.linspace(-1, 1, SIDE)
    yy, xx = torch.meshgrid(axis, axis, indexing="ij")
    kind = torch.randint(kinds, (count,), generator=generator)
    angle = (torch.pi * kind / kinds)[:, None, None]
    wave = torch.sin(3.0 * (xx * torch.cos(angle) + yy * torch.sin(angle)))
    return wave.flatten(1) + 0.15 * torch.randn(count, PIXELS, generator=generator)


class Codebook(nn.Module):
    def __init__(self, size, dim, decay=0.95, eps=1e-5):
        super().__init__()
        self.decay = decay
        self.eps = eps
        start = torch.randn(size, dim)
        self.register_buffer("codes", start)
        self.register_buffer("count", torch.ones(size))
        self.register_buffer("total", start.clone())

    @torch.no_grad()
    def nearest(self, z):
        return torch.cdist(z, self.codes).argmin(dim=1)

    @torch.no_grad()
    def follow(self, z, index):
        hits = F.one_hot(index, len(self.codes)).to(z.dtype)
        self.count.mul_(self.decay).add_(hits.sum(dim=0), alpha=1 - self.decay)
        self.total.mul_(self.decay).add_(hits.t() @ z, alpha=1 - self.decay)
        n = self.count.sum()
        smooth = (self.count + self.eps) / (n + len(self.codes) * self.eps) * n
        self.codes.copy_(self.total / smooth[:, None])

    @torch.no_grad()
    def revive(self, z, least=0.2):
        idle = (self.count < least).nonzero().flatten()
        donors = z[torch.randint(len(z), (len(idle),))]
        self.codes[idle] = donors
        self.total[idle] = donors
        self.count[idle] = 1.0
        return len(idle)

    def forward(self, z):
        index = self.nearest(z)
        quantized = self.codes[index]
        if self.training:
            self.follow(z, index)
        commitment = F.mse_loss(z, quantized)
        return z + (quantized - z).detach(), commitment, index


class PatchCoder(nn.Module):
    def __init__(self, size=16, dim=6, hidden=48):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(PIXELS, hidden), nn.ReLU(), nn.Linear(hidden, dim))
        self.codebook = Codebook(size, dim)
        self.decoder = nn.Sequential(nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, PIXELS))

    def forward(self, x):
        quantized, commitment, index = self.codebook(self.encoder(x))
        return self.decoder(quantized), commitment, index


def train(model, patches, steps=250, batch=96, beta=0.25):
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    model.train()
    for step in range(steps):
        x = patches[torch.randint(len(patches), (batch,))]
        recon, commitment, _ = model(x)
        loss = F.mse_loss(recon, x) + beta * commitment
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            revived = model.codebook.revive(model.encoder(x)) if step < 200 else 0
            print(f"step {step + 1:4d}  loss {loss.item():.4f}  revived {revived}")


@torch.no_grad()
def evaluate(model, patches):
    model.eval()
    recon, _, index = model(patches)
    return F.mse_loss(recon, patches).item(), len(index.unique())


if __name__ == "__main__":
    torch.manual_seed(6)
    generator = torch.Generator().manual_seed(14)
    train_set = make_patches(2000, generator)
    test_set = make_patches(400, generator)
    model = PatchCoder()
    start_mse, _ = evaluate(model, test_set)
    train(model, train_set)
    test_mse, used = evaluate(model, test_set)
    print(f"test mse {start_mse:.4f} -> {test_mse:.4f} with {used} codes in use")
