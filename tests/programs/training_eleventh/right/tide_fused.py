"""Water level nowcasting with the update folded into the backward pass (to save the memory of all gradients).

The big model of this project does not fit together with its gradients; this is the small version for the laptop.  Every
parameter has its own optimizer that runs as soon as the gradient of the parameter is complete.
"""
import math

import torch
import torch.nn as nn

CONFIG = {
    "seed": 4,
    "lookback": 36,
    "model": {"kind": "mixer", "width": 32, "depth": 3, "dropout": 0.05},
    "optimizer": {"kind": "AdamW", "lr": 3e-3, "weight_decay": 1e-3},
    "no_decay": ("bias", "norm", "gain"),
    "epochs": 8,
    "batch": 64,
}


def make_levels(n, steps):
    """Semi-diurnal and diurnal tide with surge and noise; two stations, the second follows the first."""
    t = torch.arange(steps)[None] + 700 * torch.rand(n, 1)
    spring = 1 + 0.3 * torch.cos(2 * math.pi * t / 354)
    tide = spring * torch.sin(2 * math.pi * t / 12.42) + 0.4 * torch.sin(2 * math.pi * t / 24)
    surge = torch.cumsum(0.05 * torch.randn(n, steps), 1)
    late = 0.8 * torch.roll(tide, 2, 1) + surge
    return torch.stack([tide + surge, late], dim=2)[:, 4:] + 0.05 * torch.randn(n, steps - 4, 2)


class MixerBlock(nn.Module):
    def __init__(self, steps, width, dropout):
        super().__init__()
        self.norm_time, self.norm_feature = nn.LayerNorm(width), nn.LayerNorm(width)
        self.time = nn.Linear(steps, steps)
        self.feature = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Dropout(dropout), nn.Linear(2 * width, width))
        self.gain = nn.Parameter(torch.full((width,), 0.1))

    def forward(self, x):
        x = x + self.gain * self.time(self.norm_time(x).transpose(1, 2)).transpose(1, 2)
        return x + self.feature(self.norm_feature(x))


class Mixer(nn.Module):
    def __init__(self, steps, width, depth, dropout):
        super().__init__()
        self.embed = nn.Linear(2, width)
        self.blocks = nn.ModuleList(MixerBlock(steps, width, dropout) for _ in range(depth))
        self.head = nn.Linear(width * steps, 2)

    def forward(self, x):
        last = x[:, -1]
        h = self.embed(x - last[:, None])
        for block in self.blocks:
            h = block(h)
        return last + self.head(h.flatten(1))


def update_in_backward(model, cfg):
    options = {k: v for k, v in cfg["optimizer"].items() if k != "kind"}
    optimizers = {}
    for name, param in model.named_parameters():
        decay = 0.0 if any(word in name for word in cfg["no_decay"]) else options["weight_decay"]
        optimizers[param] = getattr(torch.optim, cfg["optimizer"]["kind"])([param], **{**options, "weight_decay": decay})

    def update(param):
        optimizers[param].step()
        param.grad = None

    for param in optimizers:
        param.register_post_accumulate_grad_hook(update)
    return list(optimizers.values())


@torch.no_grad()
def evaluate(model, x, y):
    model.eval()
    error = (model(x) - y).abs().mean().item()
    model.train()
    return error


torch.manual_seed(CONFIG["seed"])
levels, held = make_levels(1500, CONFIG["lookback"] + 7), make_levels(1000, CONFIG["lookback"] + 7)
x, y = levels[:, :CONFIG["lookback"]], levels[:, -1]
x_held, y_held = held[:, :CONFIG["lookback"]], held[:, -1]
kind = {k: v for k, v in CONFIG["model"].items() if k != "kind"}
model = {"mixer": Mixer}[CONFIG["model"]["kind"]](CONFIG["lookback"], **kind)
optimizers = update_in_backward(model, CONFIG)
schedule = [CONFIG["optimizer"]["lr"] * 0.5 * (1 + math.cos(math.pi * e / CONFIG["epochs"])) for e in range(CONFIG["epochs"])]

for epoch in range(CONFIG["epochs"]):
    for optimizer in optimizers:
        optimizer.param_groups[0]["lr"] = schedule[epoch]
    for idx in torch.randperm(len(x)).split(CONFIG["batch"]):
        loss = (model(x[idx]) - y[idx]).abs().mean()
        loss.backward()
    if epoch % 2 == 1:
        print(f"epoch {epoch + 1:2d}  loss {loss.item():.4f}  held out {evaluate(model, x_held, y_held):.4f}")

print(f"last value as forecast {(x_held[:, -1] - y_held).abs().mean().item():.4f}")
