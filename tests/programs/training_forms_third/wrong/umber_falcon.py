import torch
from torch import nn

torch.manual_seed(73)


class PointAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.maps = nn.ParameterDict({k: nn.Parameter(torch.randn(width, width) / width ** 0.5) for k in "qkvo"})

    def part(self, x, key):
        return torch.movedim((x @ self.maps[key]).unflatten(-1, (self.heads, -1)), 2, 1)

    def forward(self, x):
        q, k, v = (self.part(x, key) for key in "qkv")
        weight = torch.einsum("bhid,bhjd->bhij", q, k).div(q.shape[-1] ** 0.5).softmax(-1)
        seen = torch.einsum("bhij,bhjd->bhid", weight, v)
        return torch.reshape(seen, x.shape) @ self.maps["o"]


class Forces(nn.Module):
    def __init__(self, width=24, heads=4):
        super().__init__()
        self.enter = nn.Linear(4, width)
        self.attend = PointAttention(width, heads)
        self.leave = nn.Sequential(nn.Linear(width, 48), nn.SiLU(), nn.Linear(48, 3))

    def forward(self, cloud):
        h = torch.nn.functional.silu(self.enter(cloud))
        return self.leave(h + self.attend(h))


def clouds(n, points=9):
    place, charge = torch.randn(n, points, 3), torch.randn(n, points, 1)
    gap = place.unsqueeze(2) - place.unsqueeze(1)
    near = torch.exp(-gap.square().sum(-1, keepdim=True))
    pull = (gap * near * charge.unsqueeze(1) * charge.unsqueeze(2)).sum(dim=2)
    return torch.cat([place, charge], dim=-1), pull


net = Forces()
opt = torch.optim.NAdam(net.parameters(), lr=3e-3)
recent = []
for it in range(150):
    cloud, pull = clouds(32)
    loss = nn.functional.mse_loss(net(cloud), pull)
    opt.zero_grad()
    loss.backward()
    opt.step()
    recent.append(loss.item())
    if it % 50 == 49:
        print(f"{it + 1} {sum(recent[-50:]) / 50:.4f}")
