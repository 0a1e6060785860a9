import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(42)


class NTXentLoss(nn.Module):
    def __init__(self, temperature=0.5):
        super().__init__()
        self.temperature = temperature

    def forward(self, z_i, z_j):
        n = z_i.size(0)
        z = torch.cat([z_i, z_j], dim=0)
        sim = F.cosine_similarity(z.unsqueeze(1), z.unsqueeze(0), dim=2) / self.temperature
        positives = torch.cat([torch.diag(sim, n), torch.diag(sim, -n)])
        exp_sim = torch.exp(sim)
        exp_sim = torch.exp(sim) * (1 - torch.eye(2 * n))
        denominator = exp_sim.sum(dim=1)
        return (-positives + torch.log(denominator)).mean()


class SensorEncoder(nn.Module):
    def __init__(self, channels=3, feat=32, proj=16):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv1d(channels, 16, 5, stride=2), nn.ReLU(),
            nn.Conv1d(16, feat, 5, stride=2), nn.ReLU(),
            nn.AdaptiveAvgPool1d(1), nn.Flatten(),
        )
        self.projector = nn.Sequential(nn.Linear(feat, feat), nn.ReLU(), nn.Linear(feat, proj))

    def forward(self, x):
        return self.projector(self.backbone(x))


def augment(x):
    scale = 1 + 0.2 * torch.randn(x.size(0), x.size(1), 1)
    return x * scale + 0.1 * torch.randn_like(x)


def make_signals(n, length=64):
    freq = torch.randint(1, 9, (n, 1, 1)).float()
    phase = torch.rand(n, 3, 1) * 6.283
    t = torch.linspace(0, 1, length)
    return torch.sin(6.283 * freq * t + phase)


signals = make_signals(512)
model = SensorEncoder()
criterion = NTXentLoss(temperature=0.2)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(1, 13):
    total = 0.0
    perm = torch.randperm(len(signals))
    for idx in perm.split(64):
        batch = signals[idx]
        loss = criterion(model(augment(batch)), model(augment(batch)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch % 3 == 0:
        print(f"epoch {epoch} contrastive loss {total / 8:.4f}")
