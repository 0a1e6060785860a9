import io

import torch
from torch import nn
from torch.nn import functional as F


def encoder(channels=8):
    return nn.Sequential(
        nn.Conv1d(1, channels, 5, padding=2),
        nn.GELU(),
        nn.Conv1d(channels, 2 * channels, 5, stride=2, padding=2),
        nn.GELU(),
    )


class PulseAutoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = encoder()
        self.decoder = nn.ConvTranspose1d(16, 1, 4, stride=2, padding=1)

    def forward(self, x):
        return self.decoder(self.encoder(x))


class PulseClassifier(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.trunk = encoder()
        self.classify = nn.Linear(16, classes)

    def forward(self, x):
        return self.classify(self.trunk(x).mean(dim=2))


def pulses(n, seed):
    g = torch.Generator().manual_seed(seed)
    kind = torch.randint(0, 3, (n,), generator=g)
    t = torch.linspace(0, 6.28, 32)
    phase = torch.rand(n, 1, generator=g) * 6.28
    wave = torch.sin(t * (2 * kind[:, None] + 1) + phase)
    return (wave + 0.25 * torch.randn(n, 32, generator=g))[:, None], kind


def pretrain(x, steps=50):
    model = PulseAutoencoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(steps):
        rows = torch.randint(0, len(x), (32,))
        noisy = x[rows] + 0.3 * torch.randn(32, 1, 32)
        loss = F.mse_loss(model(noisy), x[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"reconstruction {loss.item():.4f}")
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "steps": steps}, file)
    file.seek(0)
    return file


def finetune(file, x, y, steps=30):
    model = PulseClassifier(classes=3)
    checkpoint = torch.load(file)
    model.load_state_dict(checkpoint["model"], strict=False)
    optimizer = torch.optim.Adam(
        [
            {"params": model.trunk.parameters(), "lr": 1e-3},
            {"params": model.classify.parameters(), "lr": 1e-2},
        ]
    )
    for step in range(steps):
        rows = torch.randint(0, len(x), (32,))
        loss = F.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 9:
            print(f"step {step + 1} loss {loss.item():.4f}")
    return model


torch.manual_seed(4)
unlabelled, _ = pulses(400, 0)
checkpoint_file = pretrain(unlabelled)
few_x, few_y = pulses(60, 1)
classifier = finetune(checkpoint_file, few_x, few_y)
test_x, test_y = pulses(200, 2)
with torch.no_grad():
    print(f"accuracy {(classifier(test_x).argmax(1) == test_y).float().mean():.3f}")
