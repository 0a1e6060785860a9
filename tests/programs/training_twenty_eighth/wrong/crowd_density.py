"""Counting people in small synthetic crowd images with a density map and a count term."""
import torch
import torch.nn as nn
import torch.nn.functional as F

SIZE = 24
STRIDE = 2
MAX_HEADS = 14


def gaussian_stamps(centres, sigma, size):
    """One map per point, each summing to one over the pixels of the image."""
    axis = torch.arange(size, dtype=torch.float32)
    dy = axis[None, :] - centres[:, :1]
    dx = axis[None, :] - centres[:, 1:]
    stamps = torch.exp(-dy[:, :, None] ** 2 / (2 * sigma**2)) * torch.exp(-dx[:, None, :] ** 2 / (2 * sigma**2))
    return stamps / stamps.sum(dim=(1, 2), keepdim=True)


def make_scenes(n, generator):
    images, maps, counts = [], [], []
    for _ in range(n):
        k = int(torch.randint(1, MAX_HEADS + 1, (1,), generator=generator))
        centres = torch.rand(k, 2, generator=generator) * (SIZE - 5) + 2
        heads = gaussian_stamps(centres, 0.9, SIZE)
        shade = 0.7 + 0.3 * torch.rand(k, 1, 1, generator=generator)
        image = (heads * shade).sum(0) * 5 + 0.08 * torch.randn(SIZE, SIZE, generator=generator)
        density = gaussian_stamps(centres, 1.5, SIZE).sum(0)
        density = F.avg_pool2d(density[None, None], STRIDE)[0] * STRIDE**2
        images.append(image[None])
        maps.append(density)
        counts.append(float(k))
    return torch.stack(images), torch.stack(maps), torch.tensor(counts)


class DensityNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.front = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(STRIDE),
        )
        self.back = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=2, dilation=2),
            nn.ReLU(),
        )
        self.output = nn.Conv2d(width, 1, 1)
        nn.init.constant_(self.output.bias, -3.0)

    def forward(self, x):
        return F.softplus(self.output(self.back(self.front(x))))


class CrowdLoss(nn.Module):
    """Pixelwise squared error of the map, plus the relative error of the whole count."""

    def __init__(self, map_weight=20.0, count_weight=0.5):
        super().__init__()
        self.map_weight = map_weight
        self.count_weight = count_weight

    def forward(self, density, target_map, target_count):
        map_term = F.mse_loss(density, target_map)
        count = density.sum(dim=(2, 3))
        count_term = ((count - target_count).abs() / (target_count + 1)).mean()
        return self.map_weight * map_term + self.count_weight * count_term


@torch.no_grad()
def evaluate(model, images, counts):
    model.eval()
    predicted = model(images).sum(dim=(1, 2, 3))
    error = (predicted - counts).abs()
    sparse = counts <= 4
    dense = counts >= 11
    return error.mean().item(), error[sparse].mean().item(), error[dense].mean().item(), predicted


def train(model, images, maps, counts, steps=150, batch=16):
    criterion = CrowdLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(steps):
        model.train()
        pick = torch.randint(0, len(images), (batch,))
        density = model(images[pick])
        loss = criterion(density, maps[pick], counts[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (step + 1) % 50 == 0:
            print(f"step {step + 1:4d}  loss {loss.item():.4f}")


torch.manual_seed(3)
generator = torch.Generator().manual_seed(11)
train_set = make_scenes(160, generator)
test_images, test_maps, test_counts = make_scenes(64, generator)
model = DensityNet()
train(model, *train_set)
mae, mae_sparse, mae_dense, predicted = evaluate(model, test_images, test_counts)
print(f"MAE {mae:.2f}   sparse scenes {mae_sparse:.2f}   dense scenes {mae_dense:.2f}")
