"""VQ-VAE on tiny generated game sprites, codebook learned by moving averages."""
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(13)

SIZE, CODES, DIM = 16, 32, 8
DECAY, BETA, EPS = 0.95, 0.25, 1e-5
STEPS, BATCH = 220, 48


def make_sprites(n):
    """Mirrored blobs with one of four palettes, like small space invaders."""
    palette = torch.tensor([[0.9, 0.2, 0.2], [0.2, 0.8, 0.3], [0.2, 0.4, 0.9], [0.9, 0.8, 0.2]])
    half = (torch.rand(n, 1, 8, 2) < 0.5).float()
    shape = torch.cat([half, half.flip(3)], dim=3)
    shape = F.interpolate(shape, scale_factor=(2, 4), mode="nearest")
    colour = palette[torch.randint(0, 4, (n,))].view(n, 3, 1, 1)
    return shape * colour


class Codebook(nn.Module):
    def __init__(self):
        super().__init__()
        start = torch.randn(CODES, DIM)
        self.register_buffer("codes", start)
        self.register_buffer("code_sum", start.clone())
        self.register_buffer("code_count", torch.ones(CODES))

    @torch.no_grad()
    def refresh(self, flat, index):
        one_hot = F.one_hot(index, CODES).to(flat.dtype)
        self.code_count.mul_(DECAY).add_(one_hot.sum(0), alpha=1 - DECAY)
        self.code_sum.mul_(DECAY).add_(one_hot.t() @ flat, alpha=1 - DECAY)
        self.codes.copy_(self.code_sum / (self.code_count.unsqueeze(1) + EPS))
        # codes that nobody uses restart at a random encoder output
        idle = (self.code_count < 0.05).nonzero().squeeze(1)
        if len(idle):
            fresh = flat[torch.randint(0, len(flat), (len(idle),))]
            self.codes[idle] = fresh
            self.code_sum[idle] = fresh
            self.code_count[idle] = 1.0

    def forward(self, z):
        flat = z.permute(0, 2, 3, 1).reshape(-1, DIM)
        with torch.no_grad():
            index = torch.cdist(flat, self.codes).argmin(1)
        n, _, h, w = z.shape
        quantised = self.codes[index].view(n, h, w, DIM).permute(0, 3, 1, 2).contiguous()
        commit = F.mse_loss(z, quantised)
        if self.training:
            self.refresh(flat.detach(), index)
        return z + (quantised - z).detach(), commit, index


class SpriteVQ(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(3, 24, 4, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(24, 24, 4, stride=2, padding=1), nn.ReLU(), nn.Conv2d(24, DIM, 1),
        )
        self.codebook = Codebook()
        self.decoder = nn.Sequential(
            nn.Conv2d(DIM, 24, 3, padding=1), nn.ReLU(),
            nn.ConvTranspose2d(24, 24, 4, stride=2, padding=1), nn.ReLU(),
            nn.ConvTranspose2d(24, 3, 4, stride=2, padding=1), nn.Sigmoid(),
        )

    def forward(self, x):
        quantised, commit, index = self.codebook(self.encoder(x))
        return self.decoder(quantised), commit, index


train, test = make_sprites(1024), make_sprites(128)
model = SpriteVQ()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)


@torch.no_grad()
def test_report():
    model.eval()
    recon, _, index = model(test)
    model.train()
    return F.mse_loss(recon, test).item(), index.unique().numel()


for step in range(STEPS):
    x = train[torch.randint(0, len(train), (BATCH,))]
    recon, commit, _ = model(x)
    loss = F.mse_loss(recon, x) + BETA * commit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 55 == 0 or step == STEPS - 1:
        error, used = test_report()
        print(f"step {step:3d}  loss {loss.item():.4f}  test mse {error:.4f}  codes in use {used}")
