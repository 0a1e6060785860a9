import torch
from torch import nn
from torch.func import functional_call, grad, vmap

torch.manual_seed(11)
STEPS, LATENT, WEIGHT = 24, 6, 10.0


def sample_paths(n):
    t = torch.linspace(0, 1, STEPS)
    speed = 1.0 + torch.rand(n, 1) * 3
    phase = torch.rand(n, 1) * 6.28
    return torch.sin(speed * 6.28 * t + phase) + 0.03 * torch.randn(n, STEPS)


def mlp(*sizes):
    blocks = []
    for a, b in zip(sizes[:-1], sizes[1:]):
        blocks += [nn.Linear(a, b), nn.Softplus()]
    return nn.Sequential(*blocks[:-1])


class Adversary:
    def __init__(self):
        self.maker = mlp(LATENT, 48, 48, STEPS)
        self.judge = mlp(STEPS, 64, 64, 1)
        self.opt_m = torch.optim.RMSprop(self.maker.parameters(), lr=4e-4)
        self.opt_j = torch.optim.RMSprop(self.judge.parameters(), lr=4e-4)

    def slope_term(self, real, fake):
        weights = dict(self.judge.named_parameters())

        def score(point):
            return functional_call(self.judge, weights, (point,)).squeeze()

        mix = torch.rand(len(real), 1)
        points = torch.lerp(fake, real, mix)
        slopes = vmap(grad(score))(points)
        return (torch.linalg.vector_norm(slopes, dim=1) - 1).square().mean()

    def judge_step(self, real):
        fake = self.maker(torch.randn(len(real), LATENT)).detach()
        gap = self.judge(fake).mean() - self.judge(real).mean()
        penalty = self.slope_term(real, fake)
        self.opt_j.zero_grad()
        (gap + WEIGHT * penalty).backward()
        self.opt_j.step()
        return -gap.item(), penalty.item()

    def maker_step(self, n):
        loss = -self.judge(self.maker(torch.randn(n, LATENT))).mean()
        self.opt_m.zero_grad()
        loss.backward()
        self.opt_m.step()
        return loss.item()


game = Adversary()
for turn in range(60):
    for _ in range(3):
        distance, penalty = game.judge_step(sample_paths(64))
    loss = game.maker_step(64)
    if turn % 15 == 14:
        print(f"turn {turn + 1:3d}  distance {distance:.5f}  penalty {penalty:.5f}  maker {loss:.5f}")
