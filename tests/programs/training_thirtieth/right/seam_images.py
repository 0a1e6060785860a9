"""Grades weld seams from scan lines: a trunk learns to fill gaps, then a head learns, then all of it at low rates."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

LINE = 48
GRADES = 3
WIDTH = 48


def make_lines(n):
    grades = torch.randint(0, GRADES, (n,))
    t = torch.linspace(0, 1, LINE)
    waves = torch.sin(2 * torch.pi * ((2 + 2 * grades).unsqueeze(1) * t + torch.rand(n, 1)))
    return (0.5 + torch.rand(n, 1)) * waves + 0.9 * torch.randn(n, LINE), grades


class Block(nn.Module):
    """A residual block that starts as the identity."""

    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.zeros(()))
        self.body = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Dropout(0.1), nn.Linear(2 * width, width)
        )

    def forward(self, h):
        return h + self.gain * self.body(h)


class Trunk(nn.Module):
    def __init__(self, depth=3):
        super().__init__()
        self.inlet = nn.Linear(LINE, WIDTH)
        self.blocks = nn.ModuleList(Block(WIDTH) for _ in range(depth))

    def forward(self, lines):
        h = self.inlet(lines)
        for block in self.blocks:
            h = checkpoint(block, h, use_reentrant=False)
        return h


class Grader(nn.Module):
    def __init__(self, trunk):
        super().__init__()
        self.trunk = trunk
        self.trunk_frozen = True
        self.head = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 32), nn.ReLU(), nn.Linear(32, GRADES))

    def train(self, mode=True):
        super().train(mode)
        if self.trunk_frozen:
            self.trunk.eval()
        return self

    def thaw(self):
        self.trunk_frozen = False
        return list(self.trunk.parameters())

    def forward(self, lines):
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.trunk_frozen):
            h = self.trunk(lines)
        return self.head(h)


def fill_gaps(trunk, lines, steps=60):
    decoder = nn.Linear(WIDTH, LINE)
    optimizer = torch.optim.Adam([*trunk.parameters(), *decoder.parameters()], lr=3e-3)
    trunk.train()
    for _ in range(steps):
        batch = lines[torch.randint(0, len(lines), (64,))]
        holes = torch.rand_like(batch) < 0.25
        filled = decoder(trunk(batch.masked_fill(holes, 0.0)))
        loss = F.mse_loss(filled[holes], batch[holes])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def learn(model, optimizer, lines, grades, steps):
    model.train()
    for _ in range(steps):
        rows = torch.randint(0, len(lines), (64,))
        loss = F.cross_entropy(model(lines[rows]), grades[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


@torch.no_grad()
def accuracy(model, lines, grades):
    model.eval()
    return (model(lines).argmax(dim=1) == grades).float().mean().item()


def main():
    torch.manual_seed(19)
    lines, _ = make_lines(1500)
    few, grades = make_lines(300)
    test = make_lines(500)
    trunk = Trunk()
    print(f"gaps filled with error {fill_gaps(trunk, lines):.4f}")
    model = Grader(trunk)
    optimizer = torch.optim.AdamW(model.head.parameters(), lr=3e-3, weight_decay=0.01)
    loss = learn(model, optimizer, few, grades, steps=40)
    print(f"head alone: loss {loss:.4f}  test accuracy {accuracy(model, *test):.3f}")
    optimizer.add_param_group({"params": model.thaw(), "lr": 5e-4})
    loss = learn(model, optimizer, few, grades, steps=40)
    print(f"everything: loss {loss:.4f}  test accuracy {accuracy(model, *test):.3f}")
    return model, optimizer


if __name__ == "__main__":
    model, optimizer = main()
