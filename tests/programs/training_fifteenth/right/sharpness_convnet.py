"""Sharpness-aware training of a convnet with batch norm, ported from a Flax train step.

Two passes per batch: climb to the worst point of a small ball, take the gradient there, step from where we were.
Only the first pass is allowed to move the running statistics.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(14)

SIZE = 14
CLASSES = 5
RHO = 0.05
BATCH = 40
EPOCHS = 8


def make_images(n, templates):
    """Random shifts of class templates, in noise."""
    y = torch.randint(CLASSES, (n,))
    shift = torch.randint(-2, 3, (n, 2))
    x = torch.stack([torch.roll(templates[c], tuple(s.tolist()), dims=(1, 2)) for c, s in zip(y, shift)])
    return x + 0.9 * torch.randn_like(x), y


def conv_block(c_in, c_out):
    return nn.Sequential(nn.Conv2d(c_in, c_out, 3, padding=1, bias=False), nn.BatchNorm2d(c_out), nn.ReLU(), nn.MaxPool2d(2))


def hold_statistics(module):
    if isinstance(module, nn.BatchNorm2d):
        module.saved_momentum, module.momentum = module.momentum, 0.0


def release_statistics(module):
    if isinstance(module, nn.BatchNorm2d):
        module.momentum = module.saved_momentum


class SAM:
    def __init__(self, params, base, rho):
        self.params = [p for p in params if p.requires_grad]
        self.base = base
        self.rho = rho
        self.offsets = []

    @torch.no_grad()
    def climb(self):
        norm = torch.stack([p.grad.norm() for p in self.params]).norm() + 1e-12
        self.offsets = [p.grad * (self.rho / norm) for p in self.params]
        for p, e in zip(self.params, self.offsets):
            p.add_(e)

    @torch.no_grad()
    def descend(self):
        for p, e in zip(self.params, self.offsets):
            p.sub_(e)
        self.offsets = []
        self.base.step()


templates = F.avg_pool2d(3.0 * torch.randn(CLASSES, 1, SIZE, SIZE), 3, stride=1, padding=1)
train_x, train_y = make_images(800, templates)
test_x, test_y = make_images(500, templates)

model = nn.Sequential(conv_block(1, 12), conv_block(12, 24), nn.Flatten(), nn.Linear(24 * 9, CLASSES))
decay = [p for p in model.parameters() if p.ndim > 1]
no_decay = [p for p in model.parameters() if p.ndim <= 1]
sgd = torch.optim.SGD(
    [{"params": decay, "weight_decay": 1e-3}, {"params": no_decay, "weight_decay": 0.0}],
    lr=0.03, momentum=0.9,
)
sam = SAM(model.parameters(), sgd, RHO)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(sgd, T_max=EPOCHS * (len(train_x) // BATCH))

for epoch in range(EPOCHS):
    model.train()
    total = 0.0
    for idx in torch.randperm(len(train_x)).split(BATCH):
        x, y = train_x[idx], train_y[idx]

        sgd.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        sam.climb()

        sgd.zero_grad()
        model.apply(hold_statistics)
        F.cross_entropy(model(x), y).backward()
        model.apply(release_statistics)
        sam.descend()
        schedule.step()
        total += loss.item() * len(idx)
    print(f"epoch {epoch + 1}: loss {total / len(train_x):.4f}")

model.eval()
with torch.no_grad():
    accuracy = (model(test_x).argmax(1) == test_y).float().mean().item()
print(f"test accuracy {accuracy:.3f}")
