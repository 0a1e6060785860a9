import torch
from torch import nn

torch.manual_seed(8)


def make_scans(n, longest=20):
    size = torch.randint(12, longest + 1, (n,))
    angle = torch.rand(n, longest) * 6.2832
    radius = 0.5 + torch.rand(n, 1)
    points = torch.stack([radius * angle.cos(), 0.6 * radius * angle.sin()], -1)
    padding = torch.arange(longest) >= size[:, None]
    return points * ~padding[..., None], padding


def squared(a, b):
    return (a[:, :, None] - b[:, None]).pow(2).sum(-1)


class ShapeLoss(nn.Module):
    def forward(self, made, scan, padding):
        gap = squared(made, scan)
        to_scan = gap.masked_fill(padding[:, None, :], 0.0).amin(2)
        to_made = gap.amin(1)
        held = ~padding
        return to_scan.mean() + (to_made * held).sum() / held.sum()


class Decoder(nn.Module):
    def __init__(self, made=24):
        super().__init__()
        self.point = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 32))
        self.draw = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, made * 2), nn.Unflatten(1, (made, 2)))

    def forward(self, scan, padding):
        h = self.point(scan).masked_fill(padding[..., None], -1e4)
        return self.draw(h.amax(1))


scans, padding = make_scans(512)
model, criterion = Decoder(), ShapeLoss()
opt = torch.optim.RMSprop(model.parameters(), lr=2e-3)
for epoch in range(8):
    total = 0.0
    for pick in torch.randperm(len(scans)).split(64):
        loss = criterion(model(scans[pick], padding[pick]), scans[pick], padding[pick])
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(pick)
    print(f"epoch {epoch} shape loss {total / len(scans):.4f}")
with torch.no_grad():
    print(f"spread of the points {model(scans, padding).std(1).mean().item():.4f}")
