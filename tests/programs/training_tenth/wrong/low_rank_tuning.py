"""Low-rank adaptation of a pretrained tabular regressor to a new site, keeping the best state on validation data."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(30)


class LowRankLinear(nn.Linear):
    """A frozen linear layer with a trainable low-rank part, folded into the weight while in evaluation mode."""

    def __init__(self, base, rank=3, alpha=6.0):
        super().__init__(base.in_features, base.out_features)
        self.load_state_dict(base.state_dict())
        self.weight.requires_grad_(False)
        self.bias.requires_grad_(False)
        self.down = nn.Parameter(torch.empty(rank, base.in_features))
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))
        self.scale = alpha / rank
        self.folded = False

    def train(self, mode=True):
        super().train(mode)
        with torch.no_grad():
            if mode and self.folded:
                self.weight -= self.scale * self.up @ self.down
                self.folded = False
            elif not mode and not self.folded:
                self.weight += self.scale * self.up @ self.down
                self.folded = True
        return self

    def forward(self, x):
        out = F.linear(x, self.weight, self.bias)
        if not self.folded:
            out = out + self.scale * (x @ self.down.t()) @ self.up.t()
        return out


def make_site(count, shift, teacher):
    x = torch.randn(count, 10)
    with torch.no_grad():
        y = teacher(x + shift * torch.roll(x, 1, dims=1)) * (1 + 0.3 * shift)
    return x, y + 0.05 * torch.randn_like(y)


def fit(model, params, data, val, epochs, lr, batch=64):
    opt = torch.optim.AdamW(params, lr=lr, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, epochs)
    best, best_state = float("inf"), None
    x, y = data
    for epoch in range(epochs):
        model.train()
        for idx in torch.randperm(len(x)).split(batch):
            loss = F.mse_loss(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
        schedule.step()
        error = evaluate(model, val)
        if error < best:
            best, best_state = error, copy.deepcopy(model.state_dict())
    model.train()
    model.load_state_dict(best_state)
    return best


@torch.no_grad()
def evaluate(model, data):
    model.eval()
    x, y = data
    return F.mse_loss(model(x), y).item()


def adapt(model, rank=3):
    for name, child in model.named_children():
        if isinstance(child, nn.Linear):
            setattr(model, name, LowRankLinear(child, rank))
    return [p for p in model.parameters() if p.requires_grad]


teacher = nn.Sequential(nn.Linear(10, 24), nn.Tanh(), nn.Linear(24, 2))
nn.init.normal_(teacher[0].weight, std=0.4)
nn.init.normal_(teacher[2].weight, std=0.4)
model = nn.Sequential(nn.Linear(10, 48), nn.GELU(), nn.Linear(48, 48), nn.GELU(), nn.Linear(48, 2))
old = make_site(2048, 0.0, teacher)
fit(model, model.parameters(), old, make_site(256, 0.0, teacher), epochs=20, lr=4e-3)

train_set, val_set, test_set = (make_site(n, 0.7, teacher) for n in (512, 256, 512))
before = evaluate(model, test_set)
best = fit(model, adapt(model), train_set, val_set, epochs=14, lr=2e-3)
print(f"new site: test error before {before:.4f}  after {evaluate(model, test_set):.4f}")
