import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(17)


class PatchNet(nn.Module):
    def __init__(self, classes=5):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.ELU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 12, 3, padding=1),
            nn.ELU(),
            nn.AdaptiveMaxPool2d(2),
        )
        self.classifier = nn.Sequential(nn.Flatten(), nn.Linear(48, 24), nn.ELU(), nn.Linear(24, classes))

    def forward(self, x):
        return self.classifier(self.features(x))


def orthogonality(model):
    total = 0.0
    for layer in model.children():
        if isinstance(layer, (nn.Conv2d, nn.Linear)):
            w = layer.weight.flatten(1)
            w = w if w.shape[0] <= w.shape[1] else w.T
            gram = w @ w.T
            total = total + (gram - torch.eye(len(gram))).square().sum()
    return total


def strokes(n, seed):
    g = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 5, (n,), generator=g)
    canvas = 0.25 * torch.randn(n, 1, 10, 10, generator=g)
    for i, label in enumerate(labels.tolist()):
        offset = int(torch.randint(2, 8, (1,), generator=g))
        if label == 0:
            canvas[i, 0, offset, :] += 1
        elif label == 1:
            canvas[i, 0, :, offset] += 1
        elif label == 2:
            canvas[i, 0].diagonal()[1:].add_(1)
        elif label == 3:
            canvas[i, 0, offset, :] += 1
            canvas[i, 0, :, offset] += 1
        else:
            canvas[i, 0, offset - 1 : offset + 1, offset - 1 : offset + 1] += 1
    return canvas, labels


def train(model, images, labels, strength, steps=60):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    for step in range(steps):
        rows = torch.randint(0, len(images), (32,))
        task = F.cross_entropy(model(images[rows]), labels[rows], label_smoothing=0.05)
        objective = task + strength * orthogonality(model)
        optimizer.zero_grad()
        objective.backward()
        optimizer.step()
        if step % 15 == 14:
            print(f"step {step + 1} objective {objective.item():.4f}")


model = PatchNet()
images, labels = strokes(320, 0)
train(model, images, labels, strength=5e-3)
test_images, test_labels = strokes(200, 1)
with torch.no_grad():
    accuracy = (model(test_images).argmax(1) == test_labels).float().mean()
print(f"test accuracy {accuracy:.3f}")
