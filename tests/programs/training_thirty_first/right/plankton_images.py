"""Classifies small plankton images with a convolutional net trained by sharpness-aware minimisation."""
import torch
from torch import nn
import torch.nn.functional as F

KINDS = 4
SIZE = 10


class SAM(torch.optim.Optimizer):
    """Foret et al. 2021: the gradient is taken at the worst point of a small ball around the weights."""

    def __init__(self, params, base_optimizer, rho=0.05, **kwargs):
        super().__init__(params, dict(rho=rho, **kwargs))
        self.base_optimizer = base_optimizer(self.param_groups, **kwargs)
        self.param_groups = self.base_optimizer.param_groups
        self.defaults.update(self.base_optimizer.defaults)

    @torch.no_grad()
    def climb(self):
        norm = self.grad_norm()
        for group in self.param_groups:
            scale = group["rho"] / (norm + 1e-12)
            for p in group["params"]:
                if p.grad is None:
                    continue
                self.state[p]["kept"] = p.data.clone()
                p.add_(p.grad * scale)
        self.zero_grad()

    @torch.no_grad()
    def descend(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.data = self.state[p]["kept"]
        self.base_optimizer.step()
        self.zero_grad()

    def grad_norm(self):
        norms = [p.grad.norm() for group in self.param_groups for p in group["params"] if p.grad is not None]
        return torch.stack(norms).norm()


class PlanktonNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        )
        self.head = nn.Linear(16, KINDS)

    def forward(self, images):
        return self.head(self.features(images).flatten(1))


def set_running_stats(model, active):
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            if active:
                module.momentum = module.kept_momentum
            else:
                module.kept_momentum = module.momentum
                module.momentum = 0.0


def make_images(count, outlines):
    labels = torch.randint(0, KINDS, (count,))
    shift = torch.randint(-2, 3, (count,)).tolist()
    images = torch.stack([outlines[k].roll(s, dims=1) for k, s in zip(labels.tolist(), shift)])
    return (images + 0.5 * torch.randn_like(images)).unsqueeze(1), labels


def main():
    torch.manual_seed(31)
    outlines = (torch.rand(KINDS, SIZE, SIZE) > 0.6).float()
    train_x, train_y = make_images(400, outlines)
    test_x, test_y = make_images(200, outlines)

    model = PlanktonNet()
    optimizer = SAM(model.parameters(), torch.optim.SGD, rho=0.05, lr=0.1, momentum=0.9, weight_decay=5e-4)
    epochs = 5
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer.base_optimizer, T_max=epochs)

    for epoch in range(epochs):
        model.train()
        total = 0.0
        for rows in torch.randperm(len(train_x)).split(40):
            loss = F.cross_entropy(model(train_x[rows]), train_y[rows])
            loss.backward()
            optimizer.climb()

            set_running_stats(model, active=False)
            F.cross_entropy(model(train_x[rows]), train_y[rows]).backward()
            set_running_stats(model, active=True)
            optimizer.descend()
            total += loss.item() * len(rows)
        scheduler.step()

        model.eval()
        with torch.no_grad():
            score = (model(test_x).argmax(dim=1) == test_y).float().mean().item()
        print(f"epoch {epoch + 1}  loss {total / len(train_x):.4f}  test accuracy {score:.3f}")


if __name__ == "__main__":
    main()
