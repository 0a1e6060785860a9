"""SimSiam (Chen & He, 2021) on force traces of a robot gripper: two augmented views, then a linear probe."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import LambdaLR

torch.manual_seed(8)

LENGTH, KINDS, EPOCHS = 48, 4, 10


def force_traces(n):
    """Contact events of four kinds of object: rigid, soft, slipping, vibrating."""
    t = torch.linspace(0, 1, LENGTH)
    kind = torch.randint(0, KINDS, (n,))
    onset = 0.15 + 0.3 * torch.rand(n, 1)
    rigid = torch.sigmoid((t - onset) * 60)
    soft = torch.sigmoid((t - onset - 0.1) * 12)
    slip = rigid * torch.exp(-3 * (t - onset).clamp(min=0))
    vibrate = rigid * (0.7 + 0.3 * torch.sin(2 * math.pi * 9 * t + 6 * torch.rand(n, 1)))
    bank = torch.stack([rigid.expand(n, -1), soft.expand(n, -1), slip, vibrate], dim=1)
    trace = bank[torch.arange(n), kind] * (0.5 + torch.rand(n, 1))
    return (trace + 0.05 * torch.randn(n, LENGTH)).unsqueeze(1), kind


def augment(x):
    gain = 0.7 + 0.6 * torch.rand(len(x), 1, 1)
    shift = torch.randint(-4, 5, (1,)).item()
    return torch.roll(x, shift, dims=2) * gain + 0.05 * torch.randn_like(x)


class SimSiam(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv1d(1, 16, 7, stride=2, padding=3, bias=False), nn.BatchNorm1d(16), nn.ReLU(),
            nn.Conv1d(16, 32, 5, stride=2, padding=2, bias=False), nn.BatchNorm1d(32), nn.ReLU(),
            nn.AdaptiveMaxPool1d(3), nn.Flatten(),
        )
        self.projector = nn.Sequential(
            nn.Linear(96, 64, bias=False), nn.BatchNorm1d(64), nn.ReLU(),
            nn.Linear(64, dim), nn.BatchNorm1d(dim, affine=False),
        )
        self.projector[3].bias.requires_grad = False  # followed by BN, has no effect
        self.predictor = nn.Sequential(
            nn.Linear(dim, 16, bias=False), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, dim))

    def forward(self, x1, x2):
        z1, z2 = self.projector(self.backbone(x1)), self.projector(self.backbone(x2))
        return self.predictor(z1), self.predictor(z2), z1.detach(), z2.detach()


train_x, train_y = force_traces(1500)
test_x, test_y = force_traces(600)
model = SimSiam()
base = list(model.backbone.parameters()) + [p for p in model.projector.parameters() if p.requires_grad]
optimizer = torch.optim.SGD([
    {"params": base},
    {"params": model.predictor.parameters()},
], lr=0.05, momentum=0.9, weight_decay=1e-4)
# cosine decay for the encoder; the predictor keeps its learning rate (section 4.2 of the paper)
scheduler = LambdaLR(optimizer, [lambda e: 0.5 * (1 + math.cos(math.pi * e / EPOCHS)), lambda e: 1.0])

for epoch in range(EPOCHS):
    model.train()
    total = 0.0
    for x in train_x[torch.randperm(len(train_x))].split(100):
        p1, p2, z1, z2 = model(augment(x), augment(x))
        loss = -0.5 * (F.cosine_similarity(p1, z2).mean() + F.cosine_similarity(p2, z1).mean())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    scheduler.step()
    if epoch % 3 == 0:
        spread = F.normalize(z1, dim=1).std(dim=0).mean().item()
        print(f"epoch {epoch}: loss {total / 15:.3f}  std of z {spread:.3f} (1/sqrt(d) = {32 ** -0.5:.3f})")

# linear evaluation on frozen features
model.eval().requires_grad_(False)
probe = nn.Linear(96, KINDS)
probe_optimizer = torch.optim.Adam(probe.parameters(), lr=1e-2)
features = model.backbone(train_x)
for _ in range(150):
    probe_loss = F.cross_entropy(probe(features), train_y)
    probe_optimizer.zero_grad()
    probe_loss.backward()
    probe_optimizer.step()
accuracy = (probe(model.backbone(test_x)).argmax(1) == test_y).float().mean().item()
print(f"linear probe accuracy {accuracy:.3f}")
