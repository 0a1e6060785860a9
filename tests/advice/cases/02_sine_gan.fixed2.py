"""Small GAN that learns to draw noisy sine curves."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

POINTS, IDEAS, BATCH = 15, 5, 32


class Painter(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(IDEAS, 64)
        self.out = nn.Linear(64, POINTS)

    def forward(self, z):
        return self.out(torch.relu(self.inp(z)))


class Judge(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(POINTS, 64)
        self.out = nn.Linear(64, 1)

    def forward(self, curve):
        hidden = F.leaky_relu(self.inp(curve), 0.2)
        return torch.sigmoid(self.out(hidden))


def real_curves():
    xs = torch.linspace(-1, 1, POINTS).repeat(BATCH, 1)
    return torch.sin(xs * math.pi) + 0.02 * torch.randn(BATCH, 1)


def main(steps=5):
    torch.manual_seed(1)
    painter, judge = Painter(), Judge()
    opt_p = torch.optim.Adam(painter.parameters(), lr=1e-3)
    opt_j = torch.optim.Adam(judge.parameters(), lr=1e-3)
    for step in range(steps):
        real = real_curves()
        fake = painter(torch.randn(BATCH, IDEAS))
        p_real, p_fake = judge(real), judge(fake)
        judge_loss = -(torch.log(p_real + 1e-6) + torch.log(1 - p_fake + 1e-6)).mean()
        paint_loss = torch.log(1 - p_fake + 1e-6).mean()

        opt_j.zero_grad()
        judge_loss.backward(retain_graph=True)

        opt_p.zero_grad()
        paint_loss.backward(inputs=list(painter.parameters()))
        opt_j.step()
        opt_p.step()
        print(step, round(judge_loss.item(), 4), round(paint_loss.item(), 4))


if __name__ == "__main__":
    main()
