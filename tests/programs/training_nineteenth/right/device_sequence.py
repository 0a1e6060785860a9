"""Continual learning over three generations of an ECG-like device: elastic weight consolidation, one head per device."""
import copy
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call, grad, vmap

torch.manual_seed(52)

N_CHANNELS, N_CLASSES = 24, 5
DEVICES = 3
EPOCHS = 30
STRENGTH = 300.0

rhythm = torch.randn(N_CLASSES, 8)


def device_data(gain, n):
    y = torch.randint(0, N_CLASSES, (n,))
    latent = rhythm[y] + 0.7 * torch.randn(n, 8)
    return torch.tanh(latent @ gain) + 0.1 * torch.randn(n, N_CHANNELS), y


class Monitor(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(N_CHANNELS, width), nn.BatchNorm1d(width), nn.ReLU(),
            nn.Linear(width, width), nn.ReLU(),
        )
        self.heads = nn.ModuleList(nn.Linear(width, N_CLASSES) for _ in range(DEVICES))
        self.locked = False

    def train(self, mode=True):
        super().train(mode)
        if self.locked:  # input statistics stay those of the first device
            self.body[1].eval()
        return self

    def forward(self, x, device):
        return self.heads[device](self.body(x))


def fisher_diagonal(model, x, device):
    """Mean squared per-sample gradient of log p(y|x), y drawn from the model itself."""
    model.eval()
    weights = {n: p.detach() for n, p in model.named_parameters() if n.startswith("body")}
    with torch.no_grad():
        drawn = torch.distributions.Categorical(logits=model(x, device)).sample()

    def neg_log_p(w, xi, yi):
        return F.cross_entropy(functional_call(model, w, (xi.unsqueeze(0), device)), yi.unsqueeze(0))

    per_sample = vmap(grad(neg_log_p), in_dims=(None, 0, 0))(weights, x, drawn)
    return {n: g.detach().pow(2).mean(0) for n, g in per_sample.items()}


def penalty(model, memory):
    named = dict(model.named_parameters())
    return sum((f * (named[n] - anchor).pow(2)).sum() for fisher, anchors in memory
               for n, f in fisher.items() for anchor in [anchors[n]])


def learn(model, device, x, y, memory):
    for i, head in enumerate(model.heads):
        head.requires_grad_(i == device)
    active = [p for p in model.parameters() if p.requires_grad]
    opt = torch.optim.Adam(active, lr=2e-3)
    for _ in range(EPOCHS):
        model.train()
        for idx in torch.randperm(len(y)).split(50):
            loss = F.cross_entropy(model(x[idx], device), y[idx])
            if memory:
                loss = loss + 0.5 * STRENGTH * penalty(model, memory)
            opt.zero_grad()
            loss.backward()
            opt.step()
    model.locked = True


@torch.no_grad()
def score(model, data, device):
    model.eval()
    x, y = data
    return (model(x, device).argmax(1) == y).float().mean().item()


gains = [torch.randn(8, N_CHANNELS) * 0.5 for _ in range(DEVICES)]
train_sets = [device_data(g, 500) for g in gains]
test_sets = [device_data(g, 1000) for g in gains]
initial = Monitor()

for name, consolidate in (("plain", False), ("consolidated", True)):
    model, memory = copy.deepcopy(initial), []
    for d, (x, y) in enumerate(train_sets):
        learn(model, d, x, y, memory)
        if consolidate:
            anchors = {n: p.detach().clone() for n, p in model.named_parameters()}
            memory.append((fisher_diagonal(model, x, d), anchors))
        print(f"{name:>12s} after device {d}: " + "  ".join(f"{score(model, test_sets[k], k):.3f}" for k in range(d + 1)))
