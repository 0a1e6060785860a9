import torch
from torch import nn
from torch.func import functional_call

torch.manual_seed(29)
WINDOW = 32


def wrist(n):
    t = torch.arange(WINDOW).float()
    rate = torch.randint(1, 6, (n, 1)).float() * 0.25
    return torch.sin(rate * t + 6.28 * torch.rand(n, 1)) + 0.1 * torch.randn(n, WINDOW), rate


def jitter(x):
    return x * (0.7 + 0.6 * torch.rand(len(x), 1)) + 0.2 * torch.randn_like(x)


def unit(x):
    return x / x.norm(dim=-1, keepdim=True).clamp_min(1e-6)


class Encoder(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(WINDOW, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, width))
        self.guess = nn.Sequential(nn.Linear(width, 16), nn.ReLU(), nn.Linear(16, width))

    def forward(self, x):
        code = self.net(x)
        return unit(code), unit(self.guess(code))


class Twins:
    def __init__(self, module, lr):
        self.module, self.lr = module, lr
        self.weights = dict(module.named_parameters())
        self.pace = {k: torch.zeros_like(v) for k, v in self.weights.items()}

    def look(self, x):
        return functional_call(self.module, self.weights, (x,))

    @staticmethod
    def pull(guess, code):
        return 1 - (guess * code).sum(-1).mean()

    def step(self, x):
        pairs = [self.look(jitter(x)) for _ in range(2)]
        (code_a, guess_a), (code_b, guess_b) = pairs
        loss = 0.5 * sum(self.pull(g, c) for g, c in ((guess_a, code_b), (guess_b, code_a)))
        slopes = torch.autograd.grad(loss, list(self.weights.values()))
        with torch.no_grad():
            for (k, w), g in zip(self.weights.items(), slopes):
                self.pace[k].mul_(0.9).add_(g)
                w.sub_(self.lr * self.pace[k])
        return loss.item()

    @torch.no_grad()
    def spread(self):
        return self.look(wrist(256)[0])[0].std(0).mean().item()


twins = Twins(Encoder(), lr=0.1)
print(f"start spread {twins.spread():.4f}")
for step in range(200):
    loss = twins.step(wrist(128)[0])
    if step % 40 == 39:
        print(f"step {step + 1:3d} loss {loss:.5f} spread {twins.spread():.4f}")
