"""Texture classification with stochastic weight averaging over the tail of training."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.swa_utils import AveragedModel
from torch.utils.data import DataLoader, TensorDataset

CLASSES, SIZE = 5, 14


def grains(n, gen):
    """Grain size differs from class to class: smoothed noise, with uneven exposure."""
    label = torch.randint(0, CLASSES, (n,), generator=gen)
    img = torch.randn(n, 1, SIZE, SIZE, generator=gen)
    for c in range(CLASSES):
        for _ in range(c):
            sel = label == c
            img[sel] = F.avg_pool2d(F.pad(img[sel], (1, 1, 1, 1), mode="circular"), 3, stride=1)
    img = img / img.flatten(1).std(1).view(-1, 1, 1, 1)
    exposure = 0.5 + torch.rand(n, 1, 1, 1, generator=gen)
    return exposure * img + 0.8 * torch.randn(n, 1, SIZE, SIZE, generator=gen), label


class ConvNet(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.c1 = nn.Conv2d(1, width, 3, padding=1, bias=False)
        self.b1 = nn.BatchNorm2d(width)
        self.c2 = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1, bias=False)
        self.b2 = nn.BatchNorm2d(2 * width)
        self.fc = nn.Linear(2 * width, CLASSES)

    def forward(self, x):
        x = F.relu(self.b1(self.c1(x)))
        x = F.relu(self.b2(self.c2(x)))
        return self.fc(x.mean((2, 3)))


@torch.no_grad()
def refresh_statistics(model, loader):
    """Batch-norm statistics of the averaged weights: cumulative average over one pass."""
    norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm2d)]
    saved = [m.momentum for m in norms]
    for m in norms:
        m.reset_running_stats()
        m.momentum = None
    model.train()
    for x, _ in loader:
        model(x)
    for m, momentum in zip(norms, saved):
        m.momentum = momentum
    model.eval()


@torch.no_grad()
def accuracy(model, loader):
    was_training = model.training
    model.eval()
    hits = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    model.train(was_training)
    return hits / len(loader.dataset)


def main(seed=6, epochs=10, swa_start=5):
    torch.manual_seed(seed)
    gen = torch.Generator().manual_seed(seed)
    train = TensorDataset(*grains(1024, gen))
    loader = DataLoader(train, batch_size=32, shuffle=True, drop_last=True)
    fixed = DataLoader(train, batch_size=128)
    test = DataLoader(TensorDataset(*grains(600, gen)), batch_size=200)

    model = ConvNet()
    average = AveragedModel(model)
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    for epoch in range(epochs):
        if epoch == swa_start:
            for group in opt.param_groups:
                group["lr"] = 0.05
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        if epoch >= swa_start:
            average.update_parameters(model)
            refresh_statistics(average, fixed)
        line = f"epoch {epoch}  test {accuracy(model, test):.3f}"
        print(line + (f"  averaged {accuracy(average, test):.3f}" if epoch >= swa_start else ""))
    return model, average, fixed, test


if __name__ == "__main__":
    model, average, fixed, test = main()
