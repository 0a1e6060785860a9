"""Cross-hole travel-time tomography: slowness grid, source delays and receiver delays, from coarse to fine."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(21)

N_SOURCES, N_RECEIVERS = 24, 24
SAMPLES = 64
LEVELS = (4, 8, 16)
ITERATIONS = 150
SMOOTHING = 2e-3
PICK_ERROR = 2e-3


def true_slowness(points):
    x, z = points[..., 0], points[..., 1]
    layer = 0.3 * torch.sigmoid(25 * (z - 0.55 - 0.15 * x))
    blob = 0.45 * torch.exp(-((x - 0.35) ** 2 + (z - 0.3) ** 2) / 0.012)
    cavity = -0.3 * torch.exp(-((x - 0.7) ** 2 + (z - 0.75) ** 2) / 0.01)
    return 1.0 + layer + blob + cavity


def straight_rays():
    zs = torch.linspace(0.03, 0.97, N_SOURCES)
    zr = torch.linspace(0.03, 0.97, N_RECEIVERS)
    s, r = torch.meshgrid(torch.arange(N_SOURCES), torch.arange(N_RECEIVERS), indexing="ij")
    s, r = s.flatten(), r.flatten()
    t = (torch.arange(SAMPLES) + 0.5) / SAMPLES
    points = torch.stack([t.expand(len(s), -1), zs[s, None] * (1 - t) + zr[r, None] * t], dim=-1)
    length = torch.sqrt(1 + (zs[s] - zr[r]) ** 2)
    return points, length, s, r


class Section(nn.Module):
    """Bilinear slowness model on a square grid, with one delay per source and per receiver."""

    def __init__(self, size):
        super().__init__()
        self.log_slowness = nn.Parameter(torch.zeros(1, 1, size, size))
        self.source_delay = nn.Parameter(torch.zeros(N_SOURCES))
        self.receiver_delay = nn.Parameter(torch.zeros(N_RECEIVERS))

    @property
    def size(self):
        return self.log_slowness.shape[-1]

    def refine(self, size):
        finer = F.interpolate(self.log_slowness.detach(), size=(size, size), mode="bilinear", align_corners=True)
        self.log_slowness = nn.Parameter(finer)

    def slowness_at(self, points):
        grid = (2 * points - 1).unsqueeze(0)
        sampled = F.grid_sample(self.log_slowness, grid, mode="bilinear", align_corners=True, padding_mode="border")
        return sampled[0, 0].exp()

    def forward(self, points, length, s, r):
        return self.slowness_at(points).mean(-1) * length + self.source_delay[s] + self.receiver_delay[r]

    def roughness(self):
        m = self.log_slowness
        return (m[..., 1:, :] - m[..., :-1, :]).pow(2).sum() + (m[..., :, 1:] - m[..., :, :-1]).pow(2).sum()


points, length, s, r = straight_rays()
delays = 0.02 * torch.randn(N_SOURCES)[s] + 0.02 * torch.randn(N_RECEIVERS)[r]
clean = true_slowness(points).mean(-1) * length
picks = clean + delays + PICK_ERROR * torch.randn(len(clean))

axis = torch.linspace(0, 1, 33)
probe = torch.stack(torch.meshgrid(axis, axis, indexing="xy"), dim=-1)
target = true_slowness(probe)

section = Section(LEVELS[0])
optimizer = torch.optim.Adam([
    {"params": [section.log_slowness], "lr": 2e-2},
    {"params": [section.source_delay, section.receiver_delay], "lr": 1e-3},
], betas=(0.9, 0.99))

for level, size in enumerate(LEVELS):
    if size != section.size:
        section.refine(size)
        for group in optimizer.param_groups:
            group["lr"] *= 0.7
    for it in range(ITERATIONS):
        residual = (section(points, length, s, r) - picks) / PICK_ERROR
        loss = F.huber_loss(residual, torch.zeros_like(residual), delta=3.0)
        loss = loss + SMOOTHING * section.roughness() / PICK_ERROR
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        error = (section.slowness_at(probe) - target).pow(2).mean().sqrt().item()
        rms = residual.pow(2).mean().sqrt().item() * PICK_ERROR
    print(f"grid {size:2d}x{size:<2d}  objective {loss.item():8.4f}  pick rms {rms:.5f}  slowness rmse {error:.4f}")

print(f"final slowness rmse {error:.4f}  (spread of the true section {target.std().item():.4f})")
