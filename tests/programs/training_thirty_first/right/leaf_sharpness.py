"""Leaf disease from colour histograms, few and partly mislabelled examples, trained with sharpness-aware minimisation."""
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(37)

BINS, WIDTH, CLASSES = 30, 48, 4
TRAIN, TEST, BATCH, EPOCHS = 512, 1024, 64, 9


class SAM(torch.optim.Optimizer):
    """Steps with the gradient found at the worst point within `rho`; wraps any base optimizer."""

    def __init__(self, params, base_optimizer, rho=0.05, **kwargs):
        super().__init__(params, dict(rho=rho, **kwargs))
        self.base_optimizer = base_optimizer(self.param_groups, **kwargs)
        self.param_groups = self.base_optimizer.param_groups
        self.defaults.update(self.base_optimizer.defaults)

    @torch.no_grad()
    def first_step(self):
        norms = [p.grad.norm() for group in self.param_groups for p in group["params"]]
        norm = torch.stack(norms).norm()
        for group in self.param_groups:
            scale = group["rho"] / (norm + 1e-12)
            for p in group["params"]:
                self.state[p]["start"] = p.data.clone()
                p.add_(p.grad, alpha=scale.item())
        self.zero_grad()

    @torch.no_grad()
    def second_step(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.data.copy_(self.state[p]["start"])
        self.base_optimizer.step()
        self.zero_grad()


def set_running_stats(model, active):
    """Let the batch norms collect statistics only in the first of the two passes."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d):
            if active:
                module.momentum = module.kept_momentum
            else:
                module.kept_momentum, module.momentum = module.momentum, 0.0


class LeafNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Linear(BINS, WIDTH, bias=False), nn.BatchNorm1d(WIDTH), nn.ReLU(),
            nn.Linear(WIDTH, WIDTH, bias=False), nn.BatchNorm1d(WIDTH), nn.ReLU(),
        )
        self.classifier = nn.Linear(WIDTH, CLASSES)
        nn.init.zeros_(self.classifier.weight)
        nn.init.zeros_(self.classifier.bias)

    def forward(self, histograms):
        return self.classifier(self.features(histograms))


PROTOTYPES = torch.randn(CLASSES, BINS)


def make_leaves(count, mislabelled=0.0):
    labels = torch.randint(0, CLASSES, (count,))
    histograms = F.softmax(0.9 * PROTOTYPES[labels] + 1.1 * torch.randn(count, BINS), dim=1) * BINS
    noisy = torch.rand(count) < mislabelled
    return histograms, torch.where(noisy, torch.randint(0, CLASSES, (count,)), labels)


def smoothed_loss(logits, labels):
    return F.cross_entropy(logits, labels, label_smoothing=0.1)


@torch.no_grad()
def accuracy(model, histograms, labels):
    model.eval()
    hits = (model(histograms).argmax(dim=1) == labels).float().mean().item()
    model.train()
    return hits


train_x, train_y = make_leaves(TRAIN, mislabelled=0.15)
test_x, test_y = make_leaves(TEST)

model = LeafNet()
optimizer = SAM(model.parameters(), torch.optim.SGD, rho=0.1, lr=0.05, momentum=0.9, weight_decay=5e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer.base_optimizer, T_max=EPOCHS)

for epoch in range(EPOCHS):
    total = 0.0
    for rows in torch.randperm(TRAIN).split(BATCH):
        histograms, labels = train_x[rows], train_y[rows]
        loss = smoothed_loss(model(histograms), labels)
        loss.backward()
        optimizer.first_step()

        set_running_stats(model, active=False)
        smoothed_loss(model(histograms), labels).backward()
        set_running_stats(model, active=True)
        optimizer.second_step()
        total += loss.item() * len(rows)
    scheduler.step()
    if (epoch + 1) % 3 == 0:
        print(f"epoch {epoch + 1:2d}  train loss {total / TRAIN:.4f}  test accuracy {accuracy(model, test_x, test_y):.3f}")
