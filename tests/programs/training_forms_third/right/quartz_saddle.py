import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(19)


def rotate(q, v):
    w, r = q[:, :1], q[:, 1:]
    r = r[:, None].expand_as(v)
    t = 2 * torch.linalg.cross(r, v, dim=-1)
    return v + w[:, None] * t + torch.linalg.cross(r, t, dim=-1)


class Pose(nn.Module):
    def __init__(self, points):
        super().__init__()
        self.net = nn.Sequential(
            nn.Flatten(), nn.Linear(points * 3, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 4)
        )

    def forward(self, cloud):
        return F.normalize(self.net(cloud), dim=-1)


class Criterion:
    def __call__(self, guess, truth):
        same = (guess - truth).square().mean(-1)
        flipped = (guess + truth).square().mean(-1)
        return torch.minimum(same, flipped).mean()


def sample(shape, n):
    q = F.normalize(torch.randn(n, 4), dim=-1)
    return rotate(q, shape.expand(n, -1, -1)) + 0.01 * torch.randn(n, *shape.shape), q


def degrees(guess, truth):
    return torch.rad2deg(2 * torch.acos((guess * truth).sum(-1).abs().clamp(max=1)))


shape = torch.randn(6, 3)
model = Pose(len(shape))
criterion = Criterion()
optimizer = torch.optim.NAdam(model.parameters(), lr=4e-3)
for step in range(300):
    cloud, q = sample(shape, 64)
    loss = criterion(model(cloud), q)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if step % 100 == 99:
        print(f"step {step + 1}: {loss.item():.5f}")

with torch.no_grad():
    cloud, q = sample(shape, 500)
    print(f"median error {degrees(model(cloud), q).median().item():.2f} degrees")
