"""'Free' adversarial training (Shafahi et al., 2019) on small synthetic glyph images."""
import contextlib

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(4)
CLASSES, SIZE, EPS, REPLAYS, PASSES = 4, 12, 0.25, 4, 4


def glyphs(n):
    y = torch.randint(0, CLASSES, (n,))
    images = torch.full((n, 1, SIZE, SIZE), 0.2)
    for k in range(n):
        r, c = (int(v) for v in torch.randint(2, SIZE - 4, (2,)))
        if y[k] == 0:
            images[k, 0, r:r + 2, :] = 0.9
        elif y[k] == 1:
            images[k, 0, :, c:c + 2] = 0.9
        elif y[k] == 2:
            images[k, 0, r - 2:r + 4, c - 2:c + 4] = 0.8
        else:
            images[k, 0].diagonal().fill_(0.9)
            images[k, 0].diagonal(1).fill_(0.9)
    return (images + 0.05 * torch.randn_like(images)).clamp(0, 1), y


class GlyphNet(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1), nn.BatchNorm2d(2 * width), nn.ReLU(), nn.MaxPool2d(2))
        self.head = nn.Linear(2 * width * 9, CLASSES)

    def forward(self, x):
        return self.head(self.body(x).flatten(1))


@contextlib.contextmanager
def frozen(model):
    """Evaluation mode and no parameter gradients; both come back as they were."""
    was_training = model.training
    model.eval().requires_grad_(False)
    try:
        yield model
    finally:
        model.requires_grad_(True).train(was_training)


def pgd(model, x, y, steps=8):
    delta = (2 * torch.rand_like(x) - 1) * EPS
    with frozen(model):
        for _ in range(steps):
            delta.requires_grad_(True)
            grad, = torch.autograd.grad(F.cross_entropy(model((x + delta).clamp(0, 1)), y), delta)
            delta = (delta.detach() + EPS / 3 * grad.sign()).clamp(-EPS, EPS)
    return (x + delta).clamp(0, 1)


def accuracy(model, x, y):
    with frozen(model):
        return (model(x).argmax(-1) == y).float().mean().item()


x_train, y_train = glyphs(600)
x_test, y_test = glyphs(300)
model = GlyphNet()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
batches = -(-len(x_train) // 64)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.08, total_steps=PASSES * batches * REPLAYS)

# One perturbation for the whole run. It is carried from one minibatch to the next, as in the paper,
# and one backward pass serves both the descent on the weights and the ascent on delta.
delta = torch.zeros(64, 1, SIZE, SIZE, requires_grad=True)

for epoch in range(PASSES):
    for pick in torch.randperm(len(x_train)).split(64):
        x, y = x_train[pick], y_train[pick]
        for _ in range(REPLAYS):
            loss = F.cross_entropy(model((x + delta[:len(x)]).clamp(0, 1)), y)
            optimizer.zero_grad()
            delta.grad = None
            loss.backward()
            with torch.no_grad():
                delta += EPS * delta.grad.sign()
                delta.clamp_(-EPS, EPS)
            optimizer.step()
            scheduler.step()
    robust = accuracy(model, pgd(model, x_test, y_test), y_test)
    print(f"pass {epoch + 1}: loss {loss.item():.3f}  clean {accuracy(model, x_test, y_test):.3f}  under attack {robust:.3f}")
