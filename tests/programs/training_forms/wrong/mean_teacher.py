import copy

import torch
import torch.nn.functional as F
from torch import nn


class Cells(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.c1 = nn.Conv2d(1, 8, 3, padding=1)
        self.n1 = nn.BatchNorm2d(8)
        self.c2 = nn.Conv2d(8, 12, 3, stride=2, padding=1)
        self.n2 = nn.BatchNorm2d(12)
        self.out = nn.Linear(12, classes)

    def forward(self, x):
        x = F.relu(self.n1(self.c1(x)))
        x = F.relu(self.n2(self.c2(x)))
        return self.out(x.mean((2, 3)))


class Pair:
    def __init__(self, student, keep=0.93):
        self.student = student
        self.teacher = copy.deepcopy(student).requires_grad_(False).eval()
        self.keep = keep

    @torch.no_grad()
    def advance(self):
        old = [p for p in self.teacher.parameters()]
        new = [p for p in self.student.parameters()]
        torch._foreach_lerp_(old, new, 1 - self.keep)
        self.carry_statistics()

    def carry_statistics(self):
        self.teacher.load_state_dict(self.student.state_dict())


def slides(n, classes):
    label = torch.randint(classes, (n,))
    grid = torch.linspace(0, 6.28, 12)
    wave = torch.sin((1 + label[:, None, None]) * grid[None, :, None] + grid[None, None, :])
    return (wave + 0.9 * torch.randn(n, 12, 12))[:, None], label


def main():
    torch.manual_seed(37)
    x, y = slides(60, 4)
    pool, _ = slides(600, 4)
    test_x, test_y = slides(200, 4)
    pair = Pair(Cells(4))
    optimizer = torch.optim.AdamW(pair.student.parameters(), lr=5e-3)
    for step in range(100):
        some = pool[torch.randint(len(pool), (40,))]
        with torch.no_grad():
            belief = pair.teacher(some).softmax(1)
        logits = pair.student(torch.cat([x, some + 0.3 * torch.randn_like(some)]))
        agree = F.mse_loss(logits[len(x):].softmax(1), belief)
        loss = F.cross_entropy(logits[:len(x)], y) + 2.0 * agree
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        pair.advance()
        if step % 20 == 19:
            with torch.no_grad():
                hit = (pair.teacher(test_x).argmax(1) == test_y).float().mean()
            print(f"step {step + 1} loss {loss.item():.4f} agree {agree.item():.5f} teacher accuracy {hit:.3f}")


if __name__ == "__main__":
    main()
