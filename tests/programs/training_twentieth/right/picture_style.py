"""Neural style transfer: the pixels of one picture are optimised against the features of a small trained CNN.

The feature network is first trained to tell textures apart; after that only the picture changes.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED, SIZE = 2, 32
STYLE_WEIGHT, STEPS = 1.0, 150

torch.manual_seed(SEED)
yy, xx = torch.meshgrid(torch.arange(SIZE).float(), torch.arange(SIZE).float(), indexing="ij")


def texture(kind):
    phase, freq = 6.28 * torch.rand(1), 0.6 + 0.6 * torch.rand(1)
    wave = {0: xx, 1: yy, 2: xx + yy, 3: ((xx - 16) ** 2 + (yy - 16) ** 2).sqrt()}[kind]
    tint = 0.4 + 0.6 * torch.rand(3, 1, 1)
    return (0.5 + 0.5 * torch.sin(freq * wave + phase)) * tint


def texture_batch(n):
    kinds = torch.randint(0, 4, (n,))
    return torch.stack([texture(k) for k in kinds.tolist()]), kinds


class FeatureNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv2d(3, 12, 5, padding=2), nn.Conv2d(12, 24, 3, padding=1)])
        self.head = nn.Linear(24, 4)

    def features(self, x):
        maps = []
        for conv in self.convs:
            x = F.relu(conv(x))
            maps.append(x)
            x = F.avg_pool2d(x, 2)
        return maps

    def forward(self, x):
        return self.head(self.features(x)[-1].mean(dim=(2, 3)))


def gram(maps):
    n, c, h, w = maps.shape
    flat = maps.view(n, c, h * w)
    return flat @ flat.transpose(1, 2) / (h * w)


net = FeatureNet()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(120):
    x, kinds = texture_batch(32)
    loss = F.cross_entropy(net(x), kinds)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"feature network: loss {loss.item():.3f}")

net.eval()
for p in net.parameters():
    p.requires_grad_(False)

content = (((xx - 16) ** 2 + (yy - 16) ** 2) < 80).float().expand(1, 3, SIZE, SIZE) * 0.8
style = texture(2).unsqueeze(0)
content_target = net.features(content)[-1].detach()
style_targets = [gram(m).detach() for m in net.features(style)]

picture = content.clone().requires_grad_(True)
optimizer = torch.optim.Adam([picture], lr=0.03)


def losses(image):
    maps = net.features(image)
    content_loss = F.mse_loss(maps[-1], content_target)
    style_loss = sum(F.mse_loss(gram(m), t) for m, t in zip(maps, style_targets))
    return content_loss, style_loss


for step in range(STEPS):
    optimizer.zero_grad()
    content_loss, style_loss = losses(picture)
    total = content_loss + STYLE_WEIGHT * style_loss
    total.backward()
    optimizer.step()
    with torch.no_grad():
        picture.clamp_(0.0, 1.0)
    if step % 30 == 0:
        print(f"step {step}: total {total.item():.4f}")

with torch.no_grad():
    content_loss, style_loss = losses(picture)
    print(f"content {content_loss:.4f}  style {style_loss:.4f}  pixels {picture.min():.2f}..{picture.max():.2f}")
