import torch
import torch.nn.functional as F
from torch import nn


class ResidualMLP(nn.Module):
    def __init__(self, features, width=48, depth=2, outputs=1):
        super().__init__()
        self.inp = nn.Linear(features, width)
        self.blocks = nn.ModuleList(
            [nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU(), nn.Linear(width, width)) for _ in range(depth)]
        )
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, outputs)

    def forward(self, x):
        h = self.inp(x)
        for block in self.blocks:
            h = h + block(h)
        return self.out(self.norm(h)).squeeze(-1)


def task(n, shift, generator):
    x = torch.randn(n, 6, generator=generator)
    y = torch.tanh(x[:, 0] * x[:, 1]) + 0.5 * x[:, 2] + shift * torch.sin(x[:, 3])
    return x, y


def loop(model, data, lr, steps, batch=32):
    x, y = data
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.0)
    for step in range(steps):
        idx = torch.randint(0, len(x), (batch,))
        pred = model(x[idx])
        loss = F.mse_loss(pred.float(), y[idx].float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def score(model, data):
    x, y = data
    with torch.no_grad():
        return F.mse_loss(model(x).float(), y.float()).item()


def main():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    source = task(512, 0.0, generator)
    target = task(256, 0.6, generator)
    model = ResidualMLP(6)
    loop(model, source, lr=2e-3, steps=80)
    print(f"source {score(model, source):.4f} target before {score(model, target):.4f}")
    model = model.to(torch.bfloat16)
    target = (target[0].to(torch.bfloat16), target[1])
    for round_ in range(3):
        loss = loop(model, target, lr=2e-5, steps=30)
        print(f"round {round_} loss {loss:.4f} target {score(model, target):.4f}")
    return model


if __name__ == "__main__":
    model = main()
