"""Fine-tune a small CNN on wood-grain frequency after pretraining it on grain orientation."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3)
torch.set_num_threads(1)

SIZE = 16


def gratings(n, task):
    ys, xs = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    angle_id = torch.randint(0, 2, (n,))
    freq_id = torch.randint(0, 4, (n,))
    angle = angle_id * math.pi / 2 + 0.2 * torch.randn(n)
    freq = 0.45 + 0.35 * freq_id + 0.05 * torch.randn(n)
    phase = 2 * math.pi * torch.rand(n)
    proj = xs[None] * torch.cos(angle)[:, None, None] + ys[None] * torch.sin(angle)[:, None, None]
    images = torch.sin(freq[:, None, None] * proj + phase[:, None, None])
    images = images + 0.7 * torch.randn(n, SIZE, SIZE)
    return images[:, None], (angle_id if task == "orientation" else freq_id)


class GrainNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 8, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        )
        self.head = nn.Linear(16, classes)

    def forward(self, x):
        return self.head(self.backbone(x))


def train_epoch(model, optimizer, images, labels, batch=50):
    model.train()
    order = torch.randperm(len(images))
    total = 0.0
    for start in range(0, len(images), batch):
        idx = order[start:start + batch]
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images[idx]), labels[idx])
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    return total / len(images)


@torch.no_grad()
def accuracy(model, images, labels):
    model.eval()
    return (model(images).argmax(1) == labels).float().mean().item()


def main():
    model = GrainNet(2)
    images, labels = gratings(400, "orientation")
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(4):
        train_epoch(model, optimizer, images, labels)
    print(f"pretraining accuracy {accuracy(model, images, labels):.3f}")

    model.head = nn.Linear(16, 4)
    for p in model.backbone.parameters():
        p.requires_grad = False
    images, labels = gratings(500, "frequency")
    test_images, test_labels = gratings(500, "frequency")
    optimizer = torch.optim.AdamW(filter(lambda p: p.requires_grad, model.parameters()), lr=5e-3)

    before = None
    for epoch in range(14):
        if epoch == 4:
            before = {k: v.clone() for k, v in model.backbone.state_dict().items()}
            for p in model.backbone.parameters():
                p.requires_grad = True
            print("backbone unfrozen")
        loss = train_epoch(model, optimizer, images, labels)
        if epoch % 3 == 0:
            print(f"epoch {epoch:2d} loss {loss:.3f} test acc {accuracy(model, test_images, test_labels):.3f}")
    test_acc = accuracy(model, test_images, test_labels)
    print(f"final test accuracy {test_acc:.3f}")
    return model, before, test_acc


if __name__ == "__main__":
    main()
