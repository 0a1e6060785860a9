import torch
from torch import nn
import torch.nn.functional as F


class Upscaler(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.body = nn.Sequential(nn.Conv1d(1, width, 5, padding=2), nn.GELU(), nn.Conv1d(width, width, 3, padding=1), nn.GELU())
        self.last = nn.Conv1d(width, 2, 3, padding=1)

    def forward(self, low):
        fine = self.last(self.body(low))
        return low.repeat_interleave(2, -1) + fine.transpose(1, 2).flatten(1)[:, None]


class Judge(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv1d(1, 12, 5, stride=2), nn.LeakyReLU(0.2), nn.Conv1d(12, 1, 5))


class Training:
    def __init__(self, ceiling=10.0):
        self.up, self.judge, self.ceiling = Upscaler(), Judge(), ceiling
        self.opt_up = torch.optim.Adam(self.up.parameters(), lr=2e-3)
        self.opt_judge = torch.optim.Adam(self.judge.parameters(), lr=1e-3)

    def balance(self, pixel, adversarial):
        anchor = self.up.last.weight
        (a,) = torch.autograd.grad(pixel, anchor, retain_graph=True)
        (b,) = torch.autograd.grad(adversarial, anchor, retain_graph=True)
        return (a.norm() / (b.norm() + 1e-4)).clamp(max=self.ceiling).item()

    def upscaler_turn(self, low, high):
        out = self.up(low)
        pixel = F.l1_loss(out, high)
        adversarial = -self.judge(out).mean()
        weight = self.balance(pixel, adversarial)
        self.opt_up.zero_grad()
        (pixel + 0.2 * weight * adversarial).backward()
        self.opt_up.step()
        return out.detach(), pixel.item(), weight

    def judge_turn(self, fake, high):
        loss = F.relu(1 - self.judge(high)).mean() + F.relu(1 + self.judge(fake)).mean()
        self.opt_judge.zero_grad()
        loss.backward()
        self.opt_judge.step()
        return loss.item()


def waves(n, g):
    t = torch.linspace(0, 1, 32)
    high = torch.sin(6.28 * t * (2 + 3 * torch.rand(n, 1, generator=g))) + 0.3 * torch.sign(torch.sin(40 * t))
    return high.unflatten(1, (16, 2)).mean(-1)[:, None], high[:, None]


if __name__ == "__main__":
    torch.manual_seed(0)
    low, high = waves(256, torch.Generator().manual_seed(3))
    training = Training()
    for epoch in range(5):
        for a, b in zip(low.split(32), high.split(32)):
            fake, pixel, weight = training.upscaler_turn(a, b)
            verdict = training.judge_turn(fake, b)
        print(f"epoch {epoch} pixel {pixel:.4f} weight {weight:.3f} judge {verdict:.3f}")
