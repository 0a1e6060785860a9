import torch
import torch.nn.functional as F
from torch import nn


class Scanner(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.SiLU(), nn.MaxPool2d(2))
        self.stage = nn.Sequential(nn.Conv2d(8, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.SiLU())
        self.head = nn.Linear(16, classes)
        self.fixed_statistics = False

    def forward(self, x):
        return self.head(self.stage(self.stem(x)).mean((2, 3)))

    def norms(self):
        return [m for m in self.modules() if isinstance(m, nn.BatchNorm2d)]

    def fix_statistics(self):
        self.fixed_statistics = True
        for norm in self.norms():
            norm.requires_grad_(False)

    def train(self, mode=True):
        super().train(mode)
        if self.fixed_statistics:
            for norm in self.norms():
                norm.eval()
        return self


def scans(count, contrast, flip):
    labels = torch.arange(count) % 2
    images = 0.5 * torch.randn(count, 1, 10, 10)
    images[labels == 1, :, 3:7, 3:7] += contrast
    images[labels == 0, :, 4:6, 1:9] += contrast
    return (images.transpose(2, 3) if flip else images), labels


def fit(model, images, labels, lr, epochs, batch, tag):
    params = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(params, lr=lr, momentum=0.9)
    for epoch in range(epochs):
        model.train()
        for idx in torch.randperm(len(images)).split(batch):
            loss = F.cross_entropy(model(images[idx]), labels[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            accuracy = (model(images).argmax(1) == labels).float().mean().item()
        print(f"{tag} epoch {epoch} loss {loss.item():.4f} acc {accuracy:.3f}")


def main():
    torch.manual_seed(0)
    model = Scanner(2)
    fit(model, *scans(192, 1.5, False), lr=0.05, epochs=4, batch=32, tag="source")
    model.fix_statistics()
    fit(model, *scans(24, 1.2, True), lr=0.02, epochs=4, batch=4, tag="target")


if __name__ == "__main__":
    main()
