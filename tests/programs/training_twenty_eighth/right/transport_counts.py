"""Counting with distribution matching (DM-Count): a count loss, an optimal transport loss and a total variation loss."""
import torch
import torch.nn as nn
import torch.nn.functional as F

SIZE, CELL = 24, 3
SIDE = SIZE // CELL
CENTRES = (torch.arange(SIDE, dtype=torch.float32) + 0.5) / SIDE


def make_scenes(n, generator):
    axis = torch.arange(SIZE, dtype=torch.float32)
    images, points = [], []
    for _ in range(n):
        k = int(torch.randint(1, 13, (1,), generator=generator))
        where = torch.rand(k, 2, generator=generator) * (SIZE - 4) + 2
        dy, dx = axis[None, :] - where[:, :1], axis[None, :] - where[:, 1:]
        spots = torch.exp(-dy[:, :, None] ** 2 / 1.6) * torch.exp(-dx[:, None, :] ** 2 / 1.6)
        images.append(spots.sum(0)[None] + 0.1 * torch.randn(1, SIZE, SIZE, generator=generator))
        points.append((where + 0.5) / SIZE)
    return torch.stack(images), points


class Counter(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, stride=CELL, padding=0),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, 1, 1),
        )

    def forward(self, x):
        density = F.softplus(self.body(x) - 2.0)
        total = density.sum(dim=(1, 2, 3), keepdim=True)
        return density, density / (total + 1e-6)


@torch.no_grad()
def sinkhorn(source, target, cost, reg, rounds=30):
    """Dual potential of the source and cost of the plan, by scaling in the log domain."""
    log_a, log_b = (source + 1e-9).log(), target.log()
    f, g = torch.zeros_like(log_a), torch.zeros_like(log_b)
    for _ in range(rounds):
        g = reg * (log_b - torch.logsumexp((f[:, None] - cost) / reg, dim=0))
        f = reg * (log_a - torch.logsumexp((g[None, :] - cost) / reg, dim=1))
    plan = ((f[:, None] + g[None, :] - cost) / reg).exp()
    return f, (plan * cost).sum()


class TransportLoss(nn.Module):
    def __init__(self, reg=0.05):
        super().__init__()
        self.reg = reg
        rows, columns = torch.meshgrid(CENTRES, CENTRES, indexing="ij")
        self.register_buffer("cells", torch.stack([rows.flatten(), columns.flatten()], 1))

    def forward(self, density, normed, points):
        loss, distance = density.new_zeros(()), 0.0
        for image, spread, where in zip(density, normed, points):
            cost = torch.cdist(self.cells, where) ** 2
            target = torch.full((len(where),), 1.0 / len(where))
            beta, moved = sinkhorn(spread.detach().flatten(), target, cost, self.reg)
            source = image.detach().flatten()
            count = source.sum()
            slope = count / (count**2 + 1e-8) * beta - (source * beta).sum() / (count**2 + 1e-8)
            loss = loss + (image.flatten() * slope.detach()).sum()
            distance += moved.item()
        return loss / len(density), distance / len(density)


def point_map(points):
    out = torch.zeros(len(points), 1, SIDE, SIDE)
    for canvas, where in zip(out, points):
        cell = (where * SIDE).long().clamp(max=SIDE - 1)
        canvas.view(-1).index_add_(0, cell[:, 0] * SIDE + cell[:, 1], torch.ones(len(where)))
    return out


@torch.no_grad()
def mean_error(model, images, points):
    counts = torch.tensor([float(len(p)) for p in points])
    return (model(images)[0].sum(dim=(1, 2, 3)) - counts).abs().mean().item()


torch.manual_seed(5)
generator = torch.Generator().manual_seed(50)
images, points = make_scenes(128, generator)
test_images, test_points = make_scenes(48, generator)
maps = point_map(points)
counts = maps.sum(dim=(1, 2, 3))
model, transport = Counter(), TransportLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
print(f"MAE before {mean_error(model, test_images, test_points):.2f}")
for step in range(100):
    pick = torch.randint(0, len(images), (8,))
    density, normed = model(images[pick])
    count_loss = (density.sum(dim=(1, 2, 3)) - counts[pick]).abs().mean()
    ot_loss, distance = transport(density, normed, [points[i] for i in pick.tolist()])
    truth = maps[pick] / counts[pick].view(-1, 1, 1, 1)
    tv_loss = ((normed - truth).abs().sum(dim=(1, 2, 3)) * counts[pick]).mean()
    loss = count_loss + 2.0 * ot_loss + 0.1 * tv_loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if (step + 1) % 25 == 0:
        print(f"step {step + 1:4d}  count {count_loss.item():.2f}  transport {distance:.4f}  variation {tv_loss.item():.2f}")
print(f"MAE after {mean_error(model, test_images, test_points):.2f}")
