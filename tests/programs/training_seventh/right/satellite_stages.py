"""Land-cover patches: a trunk from a rotation pretext task, then a head, with a trunk that joins in late."""
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

SIDE, CLASSES = 14, 4


def patches(n, rng):
    y = rng.integers(0, CLASSES, n)
    yy, xx = np.mgrid[0:SIDE, 0:SIDE] / SIDE
    freq = np.array([1.0, 2.0, 3.0, 4.0])[y][:, None, None]
    shift = rng.uniform(0, 2 * np.pi, (n, 1, 1))
    x = np.sin(2 * np.pi * freq * yy + shift) + 0.7 * yy + 0.5 * rng.standard_normal((n, SIDE, SIDE))
    return torch.tensor(x[:, None], dtype=torch.float32), torch.tensor(y)


class Trunk(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.c1 = nn.Conv2d(1, width, 5, padding=2)
        self.c2 = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.c3 = nn.Conv2d(2 * width, 2 * width, 3, padding=1)

    def forward(self, x):
        h = F.relu(self.c2(F.relu(self.c1(x))))
        return F.relu(self.c3(h)).mean((2, 3))


def pretext(trunk, x, gen, steps=120, batch=48):
    guess = nn.Linear(32, 4)
    opt = torch.optim.Adam([*trunk.parameters(), *guess.parameters()], lr=3e-3)
    for _ in range(steps):
        rows = torch.randint(0, len(x), (batch,), generator=gen)
        turn = torch.randint(0, 4, (batch,), generator=gen)
        turned = torch.stack([torch.rot90(x[r], int(k), (1, 2)) for r, k in zip(rows, turn)])
        loss = F.cross_entropy(guess(trunk(turned)), turn)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()


def factor(step, start, total):
    if step < start:
        return 0.0
    return 1.0 - (step - start) / (total - start)


def supervised(trunk, head, x, y, gen, steps=150, batch=32):
    opt = torch.optim.Adam(
        [{"params": trunk.parameters(), "lr": 2e-3}, {"params": head.parameters(), "lr": 1e-2}], betas=(0.9, 0.98)
    )
    stages = []
    for start in (60, 0):
        stages.append(partial(factor, start=start, total=steps))
    plan = torch.optim.lr_scheduler.LambdaLR(opt, stages)
    for i in range(steps):
        rows = torch.randint(0, len(x), (batch,), generator=gen)
        loss = F.cross_entropy(head(trunk(x[rows])), y[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if i % 30 == 0:
            print(f"{i:4d}  loss {loss.item():.3f}  lr {['%.4f' % v for v in plan.get_last_lr()]}")
        plan.step()


def main():
    torch.manual_seed(19)
    rng = np.random.default_rng(3)
    gen = torch.Generator().manual_seed(1)
    unlabeled, _ = patches(800, rng)
    x, y = patches(300, rng)
    test_x, test_y = patches(400, rng)
    trunk, head = Trunk(), nn.Linear(32, CLASSES)
    print(f"pretext loss {pretext(trunk, unlabeled, gen):.3f}")
    supervised(trunk, head, x, y, gen)
    with torch.no_grad():
        hit = (head(trunk(test_x)).argmax(1) == test_y).float().mean().item()
    print(f"test accuracy {hit:.3f}")


if __name__ == "__main__":
    main()
