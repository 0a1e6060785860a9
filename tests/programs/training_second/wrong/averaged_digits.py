import copy

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self, classes=4):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 16, 3, stride=2, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(16)
        self.fc = nn.Linear(16 * 16, classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.relu(self.bn2(self.conv2(x)))
        return self.fc(x.flatten(1))


class ModelEMA:
    def __init__(self, model, decay=0.9):
        self.module = copy.deepcopy(model).eval()
        self.decay = decay
        for param in self.module.parameters():
            param.requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for ema, param in zip(self.module.parameters(), model.parameters()):
            ema.mul_(self.decay).add_(param, alpha=1 - self.decay)


def glyphs(count, generator):
    shapes = torch.zeros(4, 8, 8)
    shapes[0, 2:6, 2:6] = 1
    shapes[1, 3:5, :] = 1
    shapes[2, :, 3:5] = 1
    shapes[3] = torch.eye(8)
    labels = torch.randint(0, 4, (count,), generator=generator)
    images = 2.0 * shapes[labels] + torch.randn(count, 8, 8, generator=generator) + 3.0
    return images.unsqueeze(1), labels


def accuracy(model, images, labels):
    model.eval()
    with torch.no_grad():
        return (model(images).argmax(1) == labels).float().mean().item()


def main():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    images, labels = glyphs(256, generator)
    test_images, test_labels = glyphs(128, generator)
    model = Net()
    ema = ModelEMA(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, nesterov=True)
    for epoch in range(5):
        model.train()
        for idx in torch.randperm(len(images), generator=generator).split(32):
            loss = F.cross_entropy(model(images[idx]), labels[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            ema.update(model)
        print(f"epoch {epoch} loss {loss.item():.4f} averaged acc {accuracy(ema.module, test_images, test_labels):.3f}")
    return model, ema, (test_images, test_labels)


if __name__ == "__main__":
    model, ema, test = main()
