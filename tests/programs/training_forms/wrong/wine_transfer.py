from functools import partial

import torch
import torch.nn.functional as F
from torch import nn


class Grader(nn.Module):
    def __init__(self, columns, width, grades):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(columns, width), nn.LayerNorm(width), nn.ReLU(), nn.Linear(width, width))
        self.heads = nn.ModuleDict({"white": nn.Linear(width, grades), "red": nn.Linear(width, grades)})

    def forward(self, x, colour):
        return self.heads[colour](F.relu(self.trunk(x)))


def cellar(n, columns, mixing, shift):
    x = torch.randn(n, columns)
    score = torch.tanh(x @ mixing) + shift
    return x, score.argmax(1)


def fix(module):
    for p in module.parameters():
        p.requires_grad_(False)


def norm_of(module):
    return sum(p.detach().square().sum() for p in module.parameters()).sqrt().item()


def stage(model, colour, data, epochs, optimizer):
    clear = partial(optimizer.zero_grad, set_to_none=False)
    x, y = data
    for epoch in range(epochs):
        for rows in torch.randperm(len(x)).split(50):
            loss = F.cross_entropy(model(x[rows], colour), y[rows])
            clear()
            loss.backward()
            optimizer.step()
        if epoch % 3 == 2:
            print(f"{colour} epoch {epoch + 1} loss {loss.item():.4f} trunk norm {norm_of(model.trunk):.4f}")


def main():
    torch.manual_seed(4)
    mixing = torch.randn(11, 4)
    white = cellar(600, 11, mixing, torch.zeros(4))
    red = cellar(200, 11, mixing, torch.tensor([0.4, 0.0, -0.2, 0.1]))
    model = Grader(11, 32, 4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.2)
    stage(model, "white", white, 9, optimizer)
    fix(model.trunk)
    stage(model, "red", red, 12, optimizer)
    with torch.no_grad():
        for colour, (x, y) in {"white": white, "red": red}.items():
            print(colour, f"accuracy {(model(x, colour).argmax(1) == y).float().mean():.3f}")


if __name__ == "__main__":
    main()
