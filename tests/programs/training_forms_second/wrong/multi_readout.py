import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(17)


class Scene(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(3, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(12, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten())
        self.heads = nn.ModuleDict({
            "kind": nn.Linear(64, 4),
            "depth": nn.Linear(64, 1),
            "light": nn.Linear(64, 2),
        })
        self.noise = nn.ParameterDict({k: nn.Parameter(torch.zeros(())) for k in self.heads})

    def forward(self, image):
        z = self.trunk(image)
        return {k: head(z) for k, head in self.heads.items()}


def errors(out, truth):
    return {
        "kind": F.cross_entropy(out["kind"], truth["kind"]),
        "depth": F.mse_loss(out["depth"].squeeze(1), truth["depth"]),
        "light": F.mse_loss(out["light"], truth["light"]),
    }


def combine(parts, noise):
    total = 0.0
    for key, value in parts.items():
        precision = torch.exp(-noise[key])
        total = total + precision * value
    return total


def images(count=200):
    kind = torch.randint(4, (count,))
    depth = torch.rand(count) * 2
    light = torch.randn(count, 2)
    img = 0.3 * torch.randn(count, 3, 12, 12)
    img[torch.arange(count), kind % 3] += (kind.float() - 1.5)[:, None, None]
    img[:, :, :6] += depth[:, None, None, None]
    img[:, 0] += light[:, :1, None]
    return img, {"kind": kind, "depth": depth, "light": light}


img, truth = images()
model = Scene()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(12):
    for idx in torch.randperm(len(img)).split(40):
        parts = errors(model(img[idx]), {k: v[idx] for k, v in truth.items()})
        loss = combine(parts, model.noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1} loss {loss.item():.4f}", {k: round(v.item(), 3) for k, v in parts.items()})
print({k: round(torch.exp(-v).item(), 3) for k, v in model.noise.items()})
