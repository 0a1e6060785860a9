"""VQ-VAE with an exponentially averaged codebook (van den Oord et al. 2017, appendix A) on 16x16 textures."""
import torch
import torch.nn as nn
import torch.nn.functional as F

SIDE, CODES, CODE_DIM = 16, 24, 8


def make_textures(n, gen):
    """Each quarter of an image shows one of eight 8x8 stripe patterns with a brightness of its own."""
    axis = torch.arange(8.0)
    patterns = torch.stack([torch.sin(fx * axis[None, :] + fy * axis[:, None])
                            for fx, fy in [(0.8, 0), (0, 0.8), (0.8, 0.8), (0.8, -0.8), (1.6, 0), (0, 1.6), (0, 0), (1.6, 1.6)]])
    pick = torch.randint(0, len(patterns), (n, 2, 2), generator=gen)
    tiles = patterns[pick]
    image = tiles.permute(0, 1, 3, 2, 4).reshape(n, 1, SIDE, SIDE)
    return image + 0.1 * torch.randn(image.shape, generator=gen)


class EmaCodebook(nn.Module):
    def __init__(self, decay=0.95, eps=1e-5):
        super().__init__()
        self.decay, self.eps = decay, eps
        start = torch.randn(CODES, CODE_DIM)
        self.register_buffer("codes", start.clone())
        self.register_buffer("sums", start.clone())
        self.register_buffer("counts", torch.ones(CODES))

    @torch.no_grad()
    def assign(self, flat):
        return torch.cdist(flat, self.codes).argmin(1)

    @torch.no_grad()
    def adapt(self, flat, idx):
        onehot = F.one_hot(idx, CODES).to(flat.dtype)
        self.counts.lerp_(onehot.sum(0), 1 - self.decay)
        self.sums.lerp_(onehot.t() @ flat, 1 - self.decay)
        total = self.counts.sum()
        smoothed = (self.counts + self.eps) / (total + CODES * self.eps) * total
        self.codes.copy_(self.sums / smoothed.unsqueeze(1))
        # codes that nobody uses move onto random encoder outputs
        idle = (self.counts < 0.5).nonzero().squeeze(1)
        fresh = flat[torch.randint(0, len(flat), (len(idle),))]
        self.codes[idle], self.sums[idle], self.counts[idle] = fresh, fresh, 1.0

    def forward(self, z):
        flat = z.permute(0, 2, 3, 1).reshape(-1, CODE_DIM)
        idx = self.assign(flat)
        quantised = self.codes[idx].view(z.size(0), z.size(2), z.size(3), CODE_DIM).permute(0, 3, 1, 2)
        commit = F.mse_loss(z, quantised)
        if self.training:
            self.adapt(flat, idx)
        return z + (quantised - z).detach(), commit, idx


class TextureVQ(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, width, 4, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(width, width, 4, stride=4), nn.ReLU(),
            nn.Conv2d(width, CODE_DIM, 1),
        )
        self.codebook = EmaCodebook()
        self.decoder = nn.Sequential(
            nn.Conv2d(CODE_DIM, width, 1), nn.ReLU(),
            nn.ConvTranspose2d(width, width, 4, stride=4), nn.ReLU(),
            nn.ConvTranspose2d(width, 1, 4, stride=2, padding=1),
        )

    def forward(self, x):
        code, commit, idx = self.codebook(self.encoder(x))
        return self.decoder(code), commit, idx


def main():
    torch.manual_seed(51)
    gen = torch.Generator().manual_seed(52)
    train, test = make_textures(1024, gen), make_textures(256, gen)
    model = TextureVQ()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(1, 17):
        model.train()
        for idx in torch.randperm(len(train), generator=gen).split(64):
            recon, commit, _ = model(train[idx])
            loss = F.mse_loss(recon, train[idx]) + 0.25 * commit
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 4 == 0:
            model.eval()
            with torch.no_grad():
                recon, commit, used = model(test)
            error = F.mse_loss(recon, test).item()
            print(f"epoch {epoch:2d}  test error {error:.4f} (variance {test.var().item():.3f})  "
                  f"commitment {commit.item():.4f}  codes in use {used.unique().numel()}")


if __name__ == "__main__":
    main()
