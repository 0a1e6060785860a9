"""Sort ceramic glazes by noisy colour readings, trained with sharpness-aware minimization."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(31)

GLAZES = 5
READINGS = 14
TRAIN = 320
BATCH = 64
EPOCHS = 16


class SharpnessAware(torch.optim.Optimizer):
    """Takes the gradient at the worst point of a small ball and applies it at the middle of the ball."""

    def __init__(self, params, base, rho=0.05, **options):
        super().__init__(params, dict(rho=rho, **options))
        self.base = base(self.param_groups, **options)
        self.param_groups = self.base.param_groups
        self.defaults.update(self.base.defaults)

    @torch.no_grad()
    def climb(self):
        norm = torch.stack([p.grad.norm() for group in self.param_groups for p in group["params"]]).norm()
        for group in self.param_groups:
            scale = group["rho"] / (norm + 1e-12)
            for p in group["params"]:
                self.state[p]["middle"] = p.data.clone()
                p.add_(p.grad * scale)
        self.zero_grad()

    @torch.no_grad()
    def descend(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.data = self.state[p].pop("middle")
        self.base.step()
        self.zero_grad()


def set_statistics(model, active):
    """Running statistics follow the first pass of a step only."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d):
            if active:
                module.momentum = module.kept_momentum
            else:
                module.kept_momentum = module.momentum
                module.momentum = 0.0


class GlazeNet(nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(READINGS, width, bias=False), nn.BatchNorm1d(width), nn.ReLU(),
            nn.Linear(width, width, bias=False), nn.BatchNorm1d(width), nn.ReLU(),
            nn.Linear(width, GLAZES),
        )

    def forward(self, readings):
        return self.layers(readings)


def make_readings(count, centers):
    labels = torch.randint(0, GLAZES, (count,))
    readings = centers[labels] + 1.1 * torch.randn(count, READINGS)
    return readings, labels


def train_step(model, optimizer, readings, labels):
    loss = F.cross_entropy(model(readings), labels)
    loss.backward()
    optimizer.climb()

    set_statistics(model, active=False)
    F.cross_entropy(model(readings), labels).backward()
    set_statistics(model, active=True)
    optimizer.descend()
    return loss.item()


@torch.no_grad()
def accuracy(model, readings, labels):
    model.eval()
    result = (model(readings).argmax(1) == labels).float().mean().item()
    model.train()
    return result


if __name__ == "__main__":
    centers = torch.randn(GLAZES, READINGS)
    readings, labels = make_readings(TRAIN, centers)
    test_readings, test_labels = make_readings(400, centers)
    model = GlazeNet()
    optimizer = SharpnessAware(model.parameters(), torch.optim.SGD, rho=0.1, lr=0.05, momentum=0.9)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer.base, T_max=EPOCHS)
    for epoch in range(EPOCHS):
        total = 0.0
        for index in torch.randperm(TRAIN).split(BATCH):
            total += train_step(model, optimizer, readings[index], labels[index]) * len(index)
        schedule.step()
        if (epoch + 1) % 4 == 0:
            score = accuracy(model, test_readings, test_labels)
            print(f"epoch {epoch + 1:2d}  loss {total / TRAIN:.4f}  test accuracy {score:.3f}")
