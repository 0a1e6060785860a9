import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class LowRank(nn.Module):
    def __init__(self, base, rank=3, alpha=6.0):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(rank, base.in_features) / rank)
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))
        self.scale = alpha / rank
        self.pristine = None

    @property
    def merged(self):
        return self.pristine is not None

    @torch.no_grad()
    def merge(self):
        if not self.merged:
            self.pristine = self.base.weight.clone()
            self.base.weight += self.scale * self.b @ self.a

    @torch.no_grad()
    def unmerge(self):
        if self.merged:
            self.base.weight.copy_(self.pristine)
            self.pristine = None

    def train(self, mode=True):
        super().train(mode)
        self.unmerge() if mode else self.merge()
        return self

    def forward(self, x):
        y = self.base(x)
        if self.merged:
            return y
        return y + self.scale * (x @ self.a.T) @ self.b.T


def make_base(n_in=10, width=32, classes=3):
    return nn.Sequential(nn.Linear(n_in, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, classes))


def adapt(base):
    model = copy.deepcopy(base).requires_grad_(False)
    for i, layer in enumerate(model):
        if isinstance(layer, nn.Linear):
            model[i] = LowRank(layer)
    return model


def fit(model, x, y, lr, epochs, name):
    params = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(params, lr=lr, weight_decay=0.01)
    for epoch in range(epochs):
        model.train()
        for idx in torch.randperm(len(x)).split(32):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            accuracy = (model(x).argmax(dim=1) == y).float().mean().item()
        print(f"{name} epoch {epoch} loss {loss.item():.4f} accuracy {accuracy:.3f}")
    return model


def main():
    torch.manual_seed(0)
    x = torch.randn(256, 10)
    w = torch.randn(10, 3)
    base = fit(make_base(), x, (x @ w).argmax(dim=1), 5e-3, 4, "base")
    frozen = copy.deepcopy(base.state_dict())
    turned = w.clone()
    turned[:, 0] = -w[:, 0]
    tuned = fit(adapt(base), x, (x @ turned).argmax(dim=1), 1e-2, 5, "adapter")
    tuned.train()
    same = all(torch.equal(tuned[int(k.split(".")[0])].base.weight, v) for k, v in frozen.items() if k.endswith("weight"))
    print("base untouched", same)
    return tuned


if __name__ == "__main__":
    tuned = main()
