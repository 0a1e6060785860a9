import torch
from torch import nn
from torch.func import functional_call

torch.manual_seed(47)


def mlp(*widths):
    parts = []
    for a, b in zip(widths, widths[1:]):
        parts += [nn.Linear(a, b), nn.Softplus()]
    return nn.Sequential(*parts[:-1])


class CoreModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = mlp(7, 24, 12)
        self.readout = nn.ModuleDict({"ph": nn.Linear(12, 1), "clay": nn.Linear(12, 1)})

    def forward(self, depth, which):
        return self.readout[which](self.base(depth)).squeeze(-1)


def cores(which, n):
    depth = torch.rand(n, 7)
    signal = {"ph": depth[:, 0] * 3 - depth[:, 1] ** 2, "clay": depth[:, 0] * depth[:, 2] * 2}[which]
    return depth, signal + 0.05 * torch.randn(n)


def lock(module):
    for t in module.state_dict(keep_vars=True).values():
        t.requires_grad_(False)


def train(model, which, steps, n):
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    pool = cores(which, n)
    for step in range(steps):
        pick = torch.randint(n, (16,))
        loss = nn.functional.mse_loss(model(pool[0][pick], which), pool[1][pick])
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"{which}: loss {loss.item():.4f}")


@torch.no_grad()
def error(model, which):
    depth, value = cores(which, 500)
    out = functional_call(model, dict(model.named_parameters()), (depth, which))
    return (out - value).abs().mean().item()


model = CoreModel()
train(model, "ph", 200, 400)
print(f"ph error {error(model, 'ph'):.4f}")
lock(model.base)
train(model, "clay", 120, 24)
print(f"clay error {error(model, 'clay'):.4f}  ph error {error(model, 'ph'):.4f}")
