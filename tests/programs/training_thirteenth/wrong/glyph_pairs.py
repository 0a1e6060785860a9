"""Contrastive pretraining (NT-Xent) on procedurally drawn glyphs, followed by a linear probe."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3)
np.random.seed(3)

SIZE, CLASSES, BATCH, EPOCHS, TEMP = 16, 6, 64, 10, 0.2


def draw(kind):
    yy, xx = np.mgrid[0:SIZE, 0:SIZE].astype(np.float32)
    cy, cx = np.random.uniform(6, 10, 2)
    r = np.random.uniform(3.5, 5.5)
    dy, dx = yy - cy, xx - cx
    if kind == 0:
        img = (dx ** 2 + dy ** 2 < r ** 2)
    elif kind == 1:
        img = np.abs(np.hypot(dx, dy) - r) < 1.0
    elif kind == 2:
        img = (np.abs(dx) < r) & (np.abs(dy) < r)
    elif kind == 3:
        img = (np.abs(dx) < 1.2) | (np.abs(dy) < 1.2)
    elif kind == 4:
        img = np.abs(dx - dy) < 1.8
    else:
        img = (yy.astype(int) // 3) % 2 == 0
    return img.astype(np.float32)


def make_split(n):
    labels = np.random.randint(0, CLASSES, n)
    images = np.stack([draw(k) for k in labels])[:, None]
    return torch.from_numpy(images), torch.from_numpy(labels).long()


def augment(x):
    b = x.shape[0]
    shift_y, shift_x = np.random.randint(-2, 3, 2)
    x = torch.roll(x, (int(shift_y), int(shift_x)), dims=(2, 3))
    gain, bias = 0.5 + torch.rand(b, 1, 1, 1), 0.6 * torch.rand(b, 1, 1, 1) - 0.3
    return x * gain + bias + 0.25 * torch.randn_like(x)


class PairDataset(torch.utils.data.Dataset):
    def __init__(self, images):
        self.images = images

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        img = self.images[i:i + 1]
        return torch.cat([augment(img), augment(img)])


class Encoder(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU(),
            nn.Conv2d(16, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU(),
            nn.Conv2d(32, dim, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(dim * 4, dim))
        self.projector = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, 24))

    def forward(self, x):
        return self.projector(self.backbone(x))


def nt_xent(z, temperature):
    n = z.shape[0]
    z = F.normalize(z, dim=1)
    sim = z @ z.t() / temperature
    sim = sim.masked_fill(torch.eye(n, dtype=torch.bool), -1e9)
    partner = (torch.arange(n) + n // 2) % n
    return F.cross_entropy(sim, partner)


(train_x, train_y), (test_x, test_y) = make_split(640), make_split(400)
loader = torch.utils.data.DataLoader(PairDataset(train_x), batch_size=BATCH, shuffle=True, drop_last=True)

model = Encoder()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(EPOCHS):
    model.train()
    total = 0.0
    for views in loader:                      # (B, 2, 1, H, W): both crops of every image
        batch = views.flatten(0, 1)
        loss = nt_xent(model(batch.view(-1, 1, SIZE, SIZE)), TEMP)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch % 3 == 0:
        print(f"epoch {epoch + 1:2d}  nt-xent {total / len(loader):.3f}")

model.eval()
with torch.no_grad():
    feats, test_feats = model.backbone(train_x), model.backbone(test_x)
mean, std = feats.mean(0), feats.std(0) + 1e-4
probe = nn.Linear(feats.shape[1], CLASSES)
probe_opt = torch.optim.Adam(probe.parameters(), lr=2e-2)
for _ in range(150):
    probe_opt.zero_grad()
    F.cross_entropy(probe((feats - mean) / std), train_y).backward()
    probe_opt.step()
accuracy = (probe((test_feats - mean) / std).argmax(1) == test_y).float().mean().item()
print(f"linear probe accuracy {accuracy:.3f}")
