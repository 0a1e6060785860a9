"""CNN classifier on small garment-like pictures, with our own batch normalisation layer and best-epoch checkpoints.

The layer is written out by hand as an exercise (compare with nn.BatchNorm2d).
"""
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 21
CLASSES, SIZE, EPOCHS, BATCH = 6, 16, 8, 32

torch.manual_seed(SEED)
prototypes = F.avg_pool2d(torch.rand(CLASSES, 1, SIZE + 4, SIZE + 4), 5, stride=1) * 4


def make_pictures(n):
    y = torch.randint(0, CLASSES, (n,))
    shift = torch.randint(-1, 2, (n,)).tolist()
    x = torch.stack([torch.roll(prototypes[c], s, dims=2) for c, s in zip(y.tolist(), shift)])
    brightness = 0.7 + 0.6 * torch.rand(n, 1, 1, 1)
    return x * brightness + 0.5 * torch.randn(n, 1, SIZE, SIZE), y


class BatchNorm(nn.Module):
    """Batch normalisation over (N, H, W) for pictures in NCHW layout."""

    def __init__(self, channels, eps=1e-5, momentum=0.9):
        super().__init__()
        shape = (1, channels, 1, 1)
        self.gamma = nn.Parameter(torch.ones(shape))
        self.beta = nn.Parameter(torch.zeros(shape))
        self.moving_mean = torch.zeros(shape)
        self.moving_var = torch.ones(shape)
        self.eps, self.momentum = eps, momentum

    def forward(self, x):
        if self.training:
            mean = x.mean(dim=(0, 2, 3), keepdim=True)
            var = x.var(dim=(0, 2, 3), keepdim=True, unbiased=False)
            with torch.no_grad():
                self.moving_mean = self.momentum * self.moving_mean + (1 - self.momentum) * mean
                self.moving_var = self.momentum * self.moving_var + (1 - self.momentum) * var
        else:
            mean, var = self.moving_mean, self.moving_var
        return self.gamma * (x - mean) / torch.sqrt(var + self.eps) + self.beta


def make_model():
    return nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1), BatchNorm(12), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(12, 24, 3, padding=1), BatchNorm(24), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(24 * 16, CLASSES),
    )


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(dim=1) == y).float().mean().item()


train_x, train_y = make_pictures(480)
valid_x, valid_y = make_pictures(240)
test_x, test_y = make_pictures(480)

model = make_model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
checkpoint = os.path.join(tempfile.mkdtemp(), "best.pt")
best_acc = 0.0

for epoch in range(1, EPOCHS + 1):
    model.train()
    for idx in torch.randperm(len(train_x)).split(BATCH):
        loss = F.cross_entropy(model(train_x[idx]), train_y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    valid_acc = accuracy(model, valid_x, valid_y)
    if valid_acc > best_acc:
        best_acc = valid_acc
        torch.save({"epoch": epoch, "model": model.state_dict()}, checkpoint)
    print(f"epoch {epoch}: loss {loss.item():.3f}  valid acc {valid_acc:.3f}")

# report the best epoch on the test pictures, from the file, as the deployed program will do
saved = torch.load(checkpoint)
final = make_model()
final.load_state_dict(saved["model"])
test_acc = accuracy(final, test_x, test_y)
print(f"best epoch {saved['epoch']} (valid {best_acc:.3f}), test acc {test_acc:.3f}")
