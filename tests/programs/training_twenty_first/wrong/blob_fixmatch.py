"""FixMatch on small synthetic glyph images: few labels, confident pseudo-labels on the rest."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(21)
CLASSES, SIZE, LABELS_PER_CLASS = 6, 12, 4
THRESHOLD, LAMBDA_U, MU = 0.95, 1.0, 4

prototypes = F.interpolate(torch.randn(CLASSES, 1, 4, 4), size=(SIZE, SIZE), mode="bilinear", align_corners=False)


def draw_images(n, generator):
    y = torch.randint(0, CLASSES, (n,), generator=generator)
    x = prototypes[y].clone()
    shift = torch.randint(-2, 3, (n, 2), generator=generator)
    x = torch.stack([torch.roll(img, tuple(s.tolist()), dims=(1, 2)) for img, s in zip(x, shift)])
    gain = 0.6 + 0.8 * torch.rand(n, 1, 1, 1, generator=generator)
    return gain * x + 0.7 * torch.randn(x.shape, generator=generator), y


def weak(x):
    dx, dy = torch.randint(-1, 2, (2,)).tolist()
    return torch.roll(x, (dx, dy), dims=(2, 3))


def strong(x):
    x = weak(x) * (0.6 + 0.8 * torch.rand(len(x), 1, 1, 1)) + 0.4 * torch.randn_like(x)
    top, left = torch.randint(0, SIZE - 4, (2,)).tolist()
    x[:, :, top:top + 4, left:left + 4] = 0.0
    return x


class SmallNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1), nn.GroupNorm(3, 12), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3, padding=1), nn.GroupNorm(3, 24), nn.ReLU(), nn.MaxPool2d(2))
        self.head = nn.Linear(24 * 9, CLASSES)

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


def consistency_loss(model, images):
    with torch.no_grad():
        probs = F.softmax(model(weak(images)), dim=-1)
        confidence, pseudo = probs.max(dim=-1)
        mask = confidence.ge(THRESHOLD).float()
    logits = model(strong(images))
    loss = (F.cross_entropy(logits, pseudo) * mask).mean()
    return loss, mask.mean(), pseudo


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        hits = (model(x).argmax(-1) == y).float().mean().item()
    model.train()
    return hits


gen = torch.Generator().manual_seed(0)
pool_x, pool_y = draw_images(1500, gen)
test_x, test_y = draw_images(600, gen)
labelled = torch.cat([(pool_y == c).nonzero().flatten()[:LABELS_PER_CLASS] for c in range(CLASSES)])
lab_x, lab_y = pool_x[labelled], pool_y[labelled]

model = SmallNet()
optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9, nesterov=True, weight_decay=5e-4)
used = 0.0
for step in range(1, 301):
    pick = torch.randint(0, len(lab_x), (16,))
    pick_u = torch.randint(0, len(pool_x), (16 * MU,))
    sup = F.cross_entropy(model(weak(lab_x[pick])), lab_y[pick])
    unsup, ratio, pseudo = consistency_loss(model, pool_x[pick_u])
    total = sup + LAMBDA_U * unsup
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    used += ratio.item()
    if step % 75 == 0:
        right = (pseudo == pool_y[pick_u]).float().mean().item()
        print(f"step {step:3d}  sup {sup.item():.3f}  unsup {unsup.item():.3f}  mask {ratio.item():.2f}  pseudo acc {right:.2f}")

final = accuracy(model, test_x, test_y)
print(f"share of unlabelled images used {used / 300:.2f}")
print(f"test accuracy {final:.3f}")
