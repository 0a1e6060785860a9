"""Spectrum classification with additive noise as augmentation."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(107)


def spectra(n, bins=40, classes=4):
    y = torch.randint(classes, (n,))
    axis = torch.arange(bins).float()
    peak = 6 + 9 * y.float().unsqueeze(1) + torch.randn(n, 1)
    x = torch.exp(-0.5 * ((axis - peak) / 3) ** 2)
    return x + 0.05 * torch.randn(n, bins), y


def augment(batch, strength):
    batch.add_(strength * torch.randn_like(batch))
    return batch


class SpectrumNet(nn.Module):
    def __init__(self, bins=40, classes=4):
        super().__init__()
        self.fc1 = nn.Linear(bins, 48)
        self.fc2 = nn.Linear(48, classes)

    def forward(self, x):
        return self.fc2(F.relu(self.fc1(x)))


def fit(model, x, y, epochs, batch_size=64):
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(epochs):
        model.train()
        running = 0.0
        for start in range(0, len(x), batch_size):
            xb = augment(x[start : start + batch_size], strength=0.2)
            yb = y[start : start + batch_size]
            loss = F.cross_entropy(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.item() * len(xb)
        print(f"epoch {epoch:2d}: train loss {running / len(x):.4f}")


x_train, y_train = spectra(512)
x_test, y_test = spectra(256)
model = SpectrumNet()
fit(model, x_train, y_train, epochs=15)
model.eval()
with torch.no_grad():
    print("test acc", (model(x_test).argmax(1) == y_test).float().mean().item())
