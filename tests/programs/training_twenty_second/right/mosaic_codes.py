"""VQ-VAE on small mosaic tiles; the codebook is maintained by exponential moving averages (van den Oord, app. A)."""
import torch
import torch.nn as nn
import torch.nn.functional as F

TILE = 8


def mosaics(n, gen):
    """Each quadrant of a tile shows one of four textures."""
    y, x = torch.meshgrid(torch.arange(4), torch.arange(4), indexing="ij")
    textures = torch.stack([(x % 2).float(), (y % 2).float(), ((x + y) % 2).float(), torch.full((4, 4), 0.5)])
    pick = torch.randint(4, (n, 2, 2), generator=gen)
    tiles = textures[pick].permute(0, 1, 3, 2, 4).reshape(n, 1, TILE, TILE)
    return tiles + 0.05 * torch.randn(tiles.shape, generator=gen)


class EMACodebook(nn.Module):
    def __init__(self, codes=12, dim=6, decay=0.95, eps=1e-5):
        super().__init__()
        self.decay, self.eps = decay, eps
        self.register_buffer("weight", torch.randn(codes, dim))
        self.register_buffer("counts", torch.ones(codes))
        self.register_buffer("sums", self.weight.clone())

    def forward(self, z):
        flat = z.permute(0, 2, 3, 1).reshape(-1, z.shape[1])
        index = torch.cdist(flat, self.weight).argmin(1)
        chosen = self.weight[index]
        if self.training:
            self.update(flat.detach(), index)
        quant = chosen.view(z.shape[0], z.shape[2], z.shape[3], -1).permute(0, 3, 1, 2)
        commit = F.mse_loss(z, quant)
        return z + (quant - z).detach(), commit, index

    @torch.no_grad()
    def update(self, flat, index):
        onehot = F.one_hot(index, len(self.weight)).float()
        self.counts.lerp_(onehot.sum(0), 1 - self.decay)
        self.sums.lerp_(onehot.t() @ flat, 1 - self.decay)
        total = self.counts.sum()
        smooth = (self.counts + self.eps) / (total + len(self.counts) * self.eps) * total
        self.weight.copy_(self.sums / smooth.unsqueeze(1))
        # restart codes that nobody uses
        dead = self.counts < 0.5
        if dead.any():
            fresh = flat[torch.randint(len(flat), (int(dead.sum()),))]
            self.weight[dead], self.sums[dead], self.counts[dead] = fresh, fresh, 1.0


class VQVAE(nn.Module):
    def __init__(self, dim=6):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(1, 24, 4, stride=4), nn.ReLU(), nn.Conv2d(24, dim, 1))
        self.codebook = EMACodebook(dim=dim)
        self.decoder = nn.Sequential(nn.Conv2d(dim, 24, 1), nn.ReLU(), nn.ConvTranspose2d(24, 1, 4, stride=4))

    def forward(self, x):
        z, commit, index = self.codebook(self.encoder(x))
        return self.decoder(z), commit, index


def train(steps=250, batch=64, beta=0.25):
    torch.manual_seed(2)
    gen = torch.Generator().manual_seed(2)
    data, held_out = mosaics(1500, gen), mosaics(300, gen)
    model = VQVAE()
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    model.train()
    for step in range(steps):
        x = data[torch.randint(len(data), (batch,), generator=gen)]
        recon, commit, index = model(x)
        loss = F.mse_loss(recon, x) + beta * commit
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 50 == 0 or step == steps - 1:
            used = index.unique().numel()
            print(f"step {step:4d}  loss {loss.item():.4f}  commit {commit.item():.4f}  codes used {used}")
    model.eval()
    with torch.no_grad():
        error = F.mse_loss(model(held_out)[0], held_out).item()
    print(f"held-out reconstruction error {error:.4f} (variance {held_out.var().item():.4f})")
    return model, held_out, error


if __name__ == "__main__":
    train()
