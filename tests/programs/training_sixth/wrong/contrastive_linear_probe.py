"""SimCLR pre-training of a small encoder, then a linear probe on the frozen features."""
import io

import torch
import torch.nn as nn
import torch.nn.functional as F


class Backbone(nn.Module):
    def __init__(self, in_dim=48, width=64, out_dim=24):
        super().__init__()
        self.fc1 = nn.Linear(in_dim, width)
        self.fc2 = nn.Linear(width, width)
        self.fc3 = nn.Linear(width, out_dim)

    def forward(self, x):
        h = F.relu(self.fc1(x))
        h = F.relu(self.fc2(h))
        return self.fc3(h)


class SimCLR(nn.Module):
    def __init__(self, backbone, dim=24, proj_dim=16):
        super().__init__()
        self.encoder = backbone
        self.projector = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, proj_dim))

    def forward(self, x):
        return F.normalize(self.projector(self.encoder(x)), dim=1)


class LinearProbe(nn.Module):
    def __init__(self, n_classes, dim=24):
        super().__init__()
        self.backbone = Backbone()
        self.head = nn.Linear(dim, n_classes)

    def forward(self, x):
        with torch.no_grad():
            feats = self.backbone(x)
        return self.head(feats)


def make_data(n, centers, nuisance):
    y = torch.randint(0, centers.size(0), (n,))
    return centers[y] + torch.randn(n, nuisance.size(0)) @ nuisance, y


def augment(x, nuisance):
    return x + torch.randn(x.size(0), nuisance.size(0)) @ nuisance + 0.1 * torch.randn_like(x)


def nt_xent(z1, z2, temperature=0.2):
    z = torch.cat([z1, z2])
    sim = z @ z.t() / temperature
    sim = sim.masked_fill(torch.eye(z.size(0), dtype=torch.bool), -1e9)
    n = z1.size(0)
    target = torch.cat([torch.arange(n) + n, torch.arange(n)])
    return F.cross_entropy(sim, target)


def pretrain(x, nuisance, steps):
    model = SimCLR(Backbone())
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for step in range(steps):
        batch = x[torch.randint(0, x.size(0), (128,))]
        loss = nt_xent(model(augment(batch, nuisance)), model(augment(batch, nuisance)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"pretrain step {step} loss {loss.item():.3f}")
    return model


def train_probe(checkpoint, x, y, n_classes, steps=150):
    probe = LinearProbe(n_classes)
    state = torch.load(checkpoint, weights_only=True)
    probe.load_state_dict(state, strict=False)
    probe.backbone.eval()
    optimizer = torch.optim.Adam(probe.head.parameters(), lr=1e-2)
    for _ in range(steps):
        loss = F.cross_entropy(probe(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return probe


torch.manual_seed(11)
centers = 0.8 * torch.randn(6, 48)
nuisance = torch.randn(12, 48)
x_unlabelled, _ = make_data(1024, centers, nuisance)
x_train, y_train = make_data(120, centers, nuisance)
x_test, y_test = make_data(600, centers, nuisance)

simclr = pretrain(x_unlabelled, nuisance, 200)
checkpoint = io.BytesIO()
torch.save(simclr.state_dict(), checkpoint)
checkpoint.seek(0)
probe = train_probe(checkpoint, x_train, y_train, 6)
with torch.no_grad():
    accuracy = (probe(x_test).argmax(1) == y_test).float().mean().item()
print(f"linear probe accuracy {accuracy:.3f}")
