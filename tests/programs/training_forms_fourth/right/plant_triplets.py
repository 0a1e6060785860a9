import torch
from torch import nn

torch.manual_seed(41)
SPECIES, SIDE = 10, 12
leaf = torch.randn(SPECIES, 1, SIDE, SIDE)
leaf = nn.functional.avg_pool2d(leaf, 3, 1, 1) * 2


def herbarium(per_kind):
    kind = torch.arange(SPECIES).repeat_interleave(per_kind)
    roll = torch.randint(-1, 2, (len(kind),)).tolist()
    shots = torch.stack([leaf[k].roll(r, -1) for k, r in zip(kind, roll)])
    return shots + 0.7 * torch.randn_like(shots), kind


class LeafNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.eyes = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(3))
        self.coat = nn.Linear(144, 20)

    def forward(self, shots):
        return nn.functional.normalize(self.coat(self.eyes(shots).flatten(1)), dim=1)


class HardMargin(nn.Module):
    def __init__(self, margin=0.3):
        super().__init__()
        self.margin = margin

    def forward(self, coats, kind):
        alike = torch.einsum("id,jd->ij", coats, coats)
        same = torch.eq(kind[:, None], kind[None, :])
        friend = alike.masked_fill(~same, 2.0).amin(1)
        stranger = alike.masked_fill(same, -2.0).amax(1)
        gaps = self.margin + stranger - friend
        return gaps.clamp_min(0).mean(), friend.mean(), stranger.mean()


def recall(net):
    shots, kind = herbarium(8)
    with torch.no_grad():
        coats = net(shots)
    alike = coats @ coats.T
    alike.fill_diagonal_(-5)
    return (kind[alike.argmax(1)] == kind).float().mean().item()


net, measure = LeafNet(), HardMargin()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
print(f"before: recall {recall(net):.3f}")
for step in range(100):
    loss, friend, stranger = measure(net(herbarium(4)[0]), torch.arange(SPECIES).repeat_interleave(4))
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 25 == 24:
        print(f"step {step + 1}: loss {loss:.4f} friend {friend:.3f} stranger {stranger:.3f} recall {recall(net):.3f}")
