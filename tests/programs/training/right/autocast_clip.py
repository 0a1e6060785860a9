"""Sequence regression in bfloat16 autocast with gradient clipping."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils import clip_grad_norm_

LENGTH, HIDDEN, MAX_NORM = 12, 32, 1.0


class ManualRNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(2, HIDDEN)
        self.rec = nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.out = nn.Linear(HIDDEN, 1)
        nn.init.orthogonal_(self.rec.weight)

    def forward(self, x):
        h = torch.zeros(x.shape[0], HIDDEN)
        for t in range(x.shape[1]):
            h = torch.tanh(self.inp(x[:, t]) + self.rec(h))
        return self.out(h).squeeze(-1)


def marked_sums(n, gen):
    values = torch.rand(n, LENGTH, generator=gen)
    marks = (torch.rand(n, LENGTH, generator=gen) < 0.25).float()
    return torch.stack([values, marks], dim=-1), (values * marks).sum(dim=1)


def main():
    torch.manual_seed(42)
    gen = torch.Generator().manual_seed(43)
    model = ManualRNN()
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    clipped = 0
    for step in range(120):
        x, y = marked_sums(64, gen)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            pred = model(x)
        loss = F.mse_loss(pred.float(), y)
        opt.zero_grad()
        loss.backward()
        norm = clip_grad_norm_(model.parameters(), MAX_NORM)
        clipped += int(norm.item() > MAX_NORM)
        opt.step()
        if step % 30 == 29:
            print(f"step {step}: mse {loss.item():.4f} clipped so far {clipped}")
    with torch.no_grad():
        x, y = marked_sums(256, gen)
        print(f"test mse {F.mse_loss(model(x), y).item():.4f} variance {y.var().item():.4f}")


if __name__ == "__main__":
    main()
