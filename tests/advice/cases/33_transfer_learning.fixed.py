"""Reusing a trained backbone for a new label set."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Backbone(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1))
        self.fc = nn.Linear(8, classes)

    def forward(self, x):
        return self.fc(self.features(x).flatten(1))


def replace_head(model, classes):
    model.fc = nn.Linear(model.fc.in_features, classes)
    return model


def freeze(module):
    for p in module.parameters():
        p.requires_grad = False


def build(classes):
    model = replace_head(Backbone(), classes)
    freeze(model.features)
    return model


def finetune(model, batches):
    optimizer = torch.optim.SGD(model.fc.parameters(), lr=0.05)
    for images, labels in batches:
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())


if __name__ == "__main__":
    torch.manual_seed(32)
    finetune(build(4), [(torch.randn(4, 3, 9, 9), torch.randint(0, 4, (4,))) for _ in range(2)])
