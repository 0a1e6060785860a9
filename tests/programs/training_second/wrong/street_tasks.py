import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(27)


def scenes(n):
    depth = torch.rand(n, 1, 1, 1) * 2
    kind = torch.randint(0, 3, (n,))
    grid = torch.linspace(-1, 1, 12)
    texture = torch.cos(grid[None, :] * (3 + 3 * kind[:, None]))[:, None, :, None]
    ramp = grid[None, None, None, :] * depth
    brightness = torch.rand(n, 1, 1, 1)
    image = texture + ramp + brightness + 0.2 * torch.randn(n, 1, 12, 12)
    return image, {"depth": depth.flatten(), "kind": kind, "light": brightness.flatten()}


class SharedNet(nn.Module):
    def __init__(self, width=10):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1),
            nn.ELU(),
            nn.AvgPool2d(2),
            nn.Conv2d(width, width, 3, padding=1),
            nn.ELU(),
            nn.AdaptiveAvgPool2d(3),
            nn.Flatten(),
        )
        self.heads = nn.ModuleDict(
            {
                "depth": nn.Linear(9 * width, 1),
                "kind": nn.Linear(9 * width, 3),
                "light": nn.Linear(9 * width, 1),
            }
        )

    def forward(self, x, task):
        return self.heads[task](self.trunk(x))


LOSSES = {
    "depth": lambda out, y: F.smooth_l1_loss(out.squeeze(1), y),
    "kind": lambda out, y: F.cross_entropy(out, y),
    "light": lambda out, y: F.smooth_l1_loss(out.squeeze(1), y),
}
WEIGHTS = {"depth": 1.0, "kind": 0.5, "light": 2.0}


def train_batch(model, optimizer, image, targets):
    report = {}
    for task, criterion in LOSSES.items():
        loss = WEIGHTS[task] * criterion(model(image, task), targets[task])
        optimizer.zero_grad()
        loss.backward()
        report[task] = loss.item()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    return report


def show(title, report):
    print(title, " ".join(f"{task} {value:.4f}" for task, value in report.items()))


model = SharedNet()
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.0)
images, targets = scenes(256)
for epoch in range(5):
    for rows in torch.randperm(256).split(32):
        report = train_batch(model, optimizer, images[rows], {k: v[rows] for k, v in targets.items()})
    show(f"epoch {epoch}", report)

images, targets = scenes(128)
with torch.no_grad():
    show("test", {task: f(model(images, task), targets[task]).item() for task, f in LOSSES.items()})
