"""Image classification with partly false labels: stored soft labels are moved towards an average of past predictions."""
import torch
import torch.nn as nn
import torch.nn.functional as F

CLASSES, SIZE = 4, 12


def shapes(n, gen):
    y = torch.randint(0, CLASSES, (n,), generator=gen)
    x = torch.zeros(n, 1, SIZE, SIZE)
    for i, c in enumerate(y.tolist()):
        r, k = torch.randint(2, SIZE - 2, (2,), generator=gen).tolist()
        if c == 0:
            x[i, 0, r, 1:-1] = 1
        elif c == 1:
            x[i, 0, 1:-1, k] = 1
        elif c == 2:
            x[i, 0, r - 2:r + 3, k - 2:k + 3] = 1
        else:
            x[i, 0].fill_diagonal_(1)
    return x + 0.35 * torch.randn(x.shape, generator=gen), y


def flip(y, share, gen):
    hit = torch.rand(len(y), generator=gen) < share
    other = (y + torch.randint(1, CLASSES, (len(y),), generator=gen)) % CLASSES
    return torch.where(hit, other, y), hit


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 24, 3, padding=1), nn.ReLU(), nn.AdaptiveMaxPool2d(2), nn.Flatten(),
        )
        self.fc = nn.Linear(96, CLASSES)

    def forward(self, x):
        return self.fc(self.body(x))


class LabelStore:
    """Holds a distribution per training image and rewrites it as the network becomes sure."""

    def __init__(self, given, momentum=0.8, start=3):
        self.soft = F.one_hot(given, CLASSES).float()
        self.momentum = momentum
        self.start = start

    def targets(self, idx):
        return self.soft[idx]

    @torch.no_grad()
    def absorb(self, idx, logits, epoch):
        if epoch < self.start:
            return
        p = logits.softmax(dim=1)
        self.soft[idx] = self.soft[idx].mul_(self.momentum).add_(p, alpha=1 - self.momentum)

    def share_equal(self, y):
        return (self.soft.argmax(1) == y).float().mean().item()


def main(epochs=14):
    torch.manual_seed(9)
    gen = torch.Generator().manual_seed(9)
    x, y = shapes(512, gen)
    xt, yt = shapes(256, gen)
    given, hit = flip(y, 0.3, gen)
    store = LabelStore(given)
    net = Net()
    opt = torch.optim.AdamW(net.parameters(), lr=3e-3)
    print(f"true labels at the start {store.share_equal(y):.3f}")
    for epoch in range(epochs):
        net.train()
        total = 0.0
        for idx in torch.randperm(len(x), generator=gen).split(32):
            logits = net(x[idx])
            loss = -(store.targets(idx) * logits.log_softmax(dim=1)).sum(dim=1).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            store.absorb(idx, logits, epoch)
            total += loss.item() * len(idx)
        if epoch % 4 == 3:
            print(f"epoch {epoch} loss {total / len(x):.3f} true labels {store.share_equal(y):.3f}")
    net.eval()
    with torch.no_grad():
        acc = (net(xt).argmax(1) == yt).float().mean().item()
    print(f"test accuracy {acc:.3f}, true labels now {store.share_equal(y):.3f}")
    return net, store, acc


if __name__ == "__main__":
    net, store, acc = main()
