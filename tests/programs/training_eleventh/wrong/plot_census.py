"""Forest plot census: several counts read from one small aerial image, all described by a config.

The old repository had one script per target; this one builds the whole model from CONFIG.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

CONFIG = {
    "seed": 5,
    "image": 20,
    "trunk": {"channels": [8, 16], "pool": 4},
    "heads": {"names": ["conifers", "broadleaf", "deadwood"], "hidden": 32},
    "optim": {"name": "AdamW", "lr": 2e-3, "weight_decay": 1e-4},
    "loss_weights": {"conifers": 1.0, "broadleaf": 1.0, "deadwood": 1.0},
    "epochs": 14,
    "batch": 64,
}


def make_plots(n, cfg):
    """Images with three kinds of bright blobs, one kind strongest in each of three colour channels, and their counts."""
    size = cfg["image"]
    yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    images = 0.1 * torch.randn(n, 3, size, size)
    targets = {}
    tint = torch.tensor([[1.0, 0.3, 0.1], [0.2, 1.0, 0.3], [0.4, 0.4, 0.9]])
    for k, name in enumerate(cfg["heads"]["names"]):
        counts = torch.randint(0, 6, (n,))
        for j in range(5):
            centre = torch.rand(n, 2) * (size - 4) + 2
            blob = torch.exp(-((yy - centre[:, :1, None]) ** 2 + (xx - centre[:, 1:, None]) ** 2) / 2.5)
            blob = blob * (counts > j).float()[:, None, None]
            images += tint[k][None, :, None, None] * blob[:, None]
        targets[name] = counts.float()
    return images, targets


def build_trunk(cfg):
    layers, width = [], 3
    for channels in cfg["channels"]:
        layers += [nn.Conv2d(width, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU()]
        width = channels
    layers += [nn.AdaptiveAvgPool2d(cfg["pool"]), nn.Flatten()]
    return nn.Sequential(*layers), width * cfg["pool"] ** 2


def build_head(width, cfg):
    return nn.Sequential(nn.Linear(width, cfg["hidden"]), nn.ReLU(), nn.Linear(cfg["hidden"], 1))


class CensusNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.trunk, width = build_trunk(cfg["trunk"])
        self.heads = nn.ModuleDict(dict.fromkeys(cfg["heads"]["names"], build_head(width, cfg["heads"])))

    def forward(self, images):
        features = self.trunk(images)
        return {name: head(features).squeeze(1) for name, head in self.heads.items()}


@torch.no_grad()
def errors(model, images, targets):
    model.eval()
    out = {name: (pred - targets[name]).abs().mean().item() for name, pred in model(images).items()}
    model.train()
    return out


def train(cfg):
    torch.manual_seed(cfg["seed"])
    images, targets = make_plots(768, cfg)
    held_images, held_targets = make_plots(384, cfg)
    model = CensusNet(cfg)
    options = {k: v for k, v in cfg["optim"].items() if k != "name"}
    optimizer = getattr(torch.optim, cfg["optim"]["name"])(model.parameters(), **options)
    for epoch in range(cfg["epochs"]):
        order = torch.randperm(len(images))
        for idx in order.split(cfg["batch"]):
            predictions = model(images[idx])
            loss = sum(cfg["loss_weights"][name] * F.smooth_l1_loss(pred, targets[name][idx])
                       for name, pred in predictions.items())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 4 == 1:
            print(f"epoch {epoch:2d}  loss {loss.item():.3f}")
    return model, errors(model, held_images, held_targets)


if __name__ == "__main__":
    model, held = train(CONFIG)
    for name, value in held.items():
        print(f"{name:10s} mean absolute error {value:.3f}")
