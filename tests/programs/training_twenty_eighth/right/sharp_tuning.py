"""Fine-tuning a pretrained encoder with sharpness-aware minimisation; the stem and its norms stay fixed."""
import torch
import torch.nn as nn
import torch.nn.functional as F

SIZE = 16


def make_objects(n, generator, inverted):
    """Crosses, squares, bars and discs; the target domain shows them dark on light."""
    labels = torch.randint(0, 4, (n,), generator=generator)
    y, x = torch.meshgrid(torch.arange(SIZE) - 7.5, torch.arange(SIZE) - 7.5, indexing="ij")
    images = torch.zeros(n, 1, SIZE, SIZE)
    for i, label in enumerate(labels.tolist()):
        dy, dx = (torch.rand(2, generator=generator) * 5 - 2.5).tolist()
        a, b = (y - dy).abs(), (x - dx).abs()
        shape = [(a < 1.5) | (b < 1.5), (a < 4) & (b < 4), (a < 2) & (b < 6), (a**2 + b**2) < 14][label]
        images[i, 0] = (shape & (a < 6) & (b < 6)).float()
    images = 1.2 - images if inverted else images
    return images + 0.4 * torch.randn(images.shape, generator=generator), labels


class FrozenBatchNorm2d(nn.Module):
    def __init__(self, norm):
        super().__init__()
        for name in ("weight", "bias", "running_mean", "running_var"):
            self.register_buffer(name, getattr(norm, name).detach().clone())
        self.eps = norm.eps

    def forward(self, x):
        scale = self.weight * (self.running_var + self.eps).rsqrt()
        return x * scale.view(1, -1, 1, 1) + (self.bias - self.running_mean * scale).view(1, -1, 1, 1)


class Encoder(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.body = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(2 * width)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm1(self.stem(x))), 2)
        return F.relu(self.norm2(self.body(x))).flatten(1)


class SAM(torch.optim.Optimizer):
    def __init__(self, params, base_optimizer, rho=0.05, **kwargs):
        super().__init__(params, dict(rho=rho, **kwargs))
        self.base_optimizer = base_optimizer(self.param_groups, **kwargs)
        self.param_groups = self.base_optimizer.param_groups

    @torch.no_grad()
    def first_step(self):
        norms = [p.grad.norm() for g in self.param_groups for p in g["params"] if p.grad is not None]
        length = torch.stack(norms).norm()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                self.state[p]["old_p"] = p.data.clone()
                p.add_(p.grad, alpha=(group["rho"] / (length + 1e-12)).item())
        self.zero_grad()

    @torch.no_grad()
    def second_step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.data = self.state[p]["old_p"]
        self.base_optimizer.step()
        self.zero_grad()


def set_statistics(model, active):
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = 0.1 if active else 0.0


def accuracy(model, images, labels):
    model.eval()
    with torch.no_grad():
        return (model(images).argmax(1) == labels).float().mean().item()


torch.manual_seed(13)
generator = torch.Generator().manual_seed(31)
encoder = Encoder()
model = nn.Sequential(encoder, nn.Linear(512, 4))
images, labels = make_objects(320, generator, inverted=False)
adam = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(60):
    pick = torch.randint(0, len(images), (32,))
    loss = F.cross_entropy(model(images[pick]), labels[pick])
    adam.zero_grad()
    loss.backward()
    adam.step()
print(f"source accuracy {accuracy(model, images, labels):.3f}")

images, labels = make_objects(160, generator, inverted=True)
test_set = make_objects(200, generator, inverted=True)
encoder.stem.weight.requires_grad_(False)
encoder.norm1 = FrozenBatchNorm2d(encoder.norm1)
model[1] = nn.Linear(512, 4)
groups = [
    {"params": [p for p in encoder.parameters() if p.requires_grad], "lr": 0.01},
    {"params": model[1].parameters(), "lr": 0.03},
]
optimizer = SAM(groups, torch.optim.SGD, rho=0.05, lr=0.01, momentum=0.9)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer.base_optimizer, 100)
print(f"target accuracy before {accuracy(model, *test_set):.3f}")
for step in range(100):
    model.train()
    pick = torch.randint(0, len(images), (32,))
    loss = F.cross_entropy(model(images[pick]), labels[pick])
    optimizer.zero_grad()
    loss.backward()
    optimizer.first_step()
    set_statistics(model, active=False)
    F.cross_entropy(model(images[pick]), labels[pick]).backward()
    optimizer.second_step()
    set_statistics(model, active=True)
    schedule.step()
    if (step + 1) % 25 == 0:
        print(f"step {step + 1:4d}  loss {loss.item():.3f}")
print(f"target accuracy after  {accuracy(model, *test_set):.3f}")
