import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def synth(n, seed):
    g = torch.Generator().manual_seed(seed)
    labels = torch.arange(n) % 3
    images = 0.3 * torch.randn(n, 1, 12, 12, generator=g)
    for i, kind in enumerate(labels.tolist()):
        r = int(torch.randint(2, 8, (1,), generator=g))
        if kind == 0:
            images[i, 0, r : r + 2, :] += 1
        elif kind == 1:
            images[i, 0, :, r : r + 2] += 1
        else:
            images[i, 0, r : r + 3, r : r + 3] += 1.5
    return TensorDataset(images, labels)


def conv_bn(cin, cout, stride):
    return [nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU()]


def build():
    return nn.Sequential(*conv_bn(1, 8, 2), *conv_bn(8, 16, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 3))


def accuracy(net, loader):
    net.eval()
    hits = total = 0
    with torch.no_grad():
        for x, y in loader:
            hits += (net(x).argmax(1) == y).sum().item()
            total += len(y)
    return hits / total


torch.manual_seed(0)
epochs = 6
train_loader = DataLoader(synth(192, 1), batch_size=24, shuffle=True)
test_loader = DataLoader(synth(96, 2), batch_size=48)
net = build()
optimizer = optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)

for epoch in range(epochs):
    net.train()
    running = 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
        running += loss.item()
    print(f"epoch {epoch + 1} loss {running / len(train_loader):.4f} acc {accuracy(net, test_loader):.3f}")
