"""Self-distillation against label noise: a temporal ensemble of the model's own predictions softens the given labels.

The class distribution of every training sample starts at its (partly wrong) label. After each epoch it moves towards
the current prediction, and from the end of the warm-up on the network is trained mostly on these softened targets.
"""
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(3)

CLASSES = 6
DIM = 20
NOISE = 0.4


def make_data(n, centers):
    y = torch.randint(CLASSES, (n,))
    x = centers[y] + 1.1 * torch.randn(n, DIM)
    x[:, :4] = x[:, :4] + 0.3 * x[:, 4:8] * x[:, 8:12]
    return x, y


def corrupt(y, rate):
    flip = torch.rand(len(y)) < rate
    return torch.where(flip, torch.randint(CLASSES, (len(y),)), y)


class TargetEnsemble:
    """Keeps one class distribution per training sample."""

    def __init__(self, labels, decay=0.7):
        self.decay = decay
        self.targets = F.one_hot(labels, CLASSES)

    @torch.no_grad()
    def update(self, model, x):
        model.eval()
        probs = torch.cat([model(part).softmax(1) for part in x.split(256)])
        model.train()
        self.targets.copy_(self.decay * self.targets + (1 - self.decay) * probs)

    def batch(self, idx):
        return self.targets[idx].float()


def build_model():
    return nn.Sequential(
        nn.Linear(DIM, 128), nn.BatchNorm1d(128), nn.ReLU(),
        nn.Linear(128, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Dropout(0.1),
        nn.Linear(128, CLASSES),
    )


def soft_cross_entropy(logits, target):
    return -(target * logits.log_softmax(1)).sum(1).mean()


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    result = (model(x).argmax(1) == y).float().mean().item()
    model.train()
    return result


centers = 0.9 * torch.randn(CLASSES, DIM)
train_x, clean_y = make_data(1500, centers)
train_y = corrupt(clean_y, NOISE)
test_x, test_y = make_data(2000, centers)

model = build_model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[24], gamma=0.2)
ensemble = TargetEnsemble(train_y)

WARMUP, EPOCHS = 4, 32
for epoch in range(EPOCHS):
    running = 0.0
    for idx in torch.randperm(len(train_x)).split(64):
        logits = model(train_x[idx])
        given = F.cross_entropy(logits, train_y[idx])
        loss = 0.2 * given + 0.8 * soft_cross_entropy(logits, ensemble.batch(idx))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item() * len(idx)
    scheduler.step()
    if epoch + 1 >= WARMUP:
        ensemble.update(model, train_x)
    if (epoch + 1) % 8 == 0:
        print(f"epoch {epoch + 1:2d}  loss {running / len(train_x):.3f}  test acc {accuracy(model, test_x, test_y):.3f}")

test_acc = accuracy(model, test_x, test_y)
print(f"labels correct before training: {(train_y == clean_y).float().mean().item():.3f}")
print(f"final test accuracy: {test_acc:.3f}")
