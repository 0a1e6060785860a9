"""Keyword spotting on synthetic log-mel frames, 3-bit learned-step quantization of weights and activations."""
import math

import torch
import torch.nn.functional as F
from torch import nn

N_MELS, N_FRAMES, N_WORDS = 16, 24, 6


class LearnedStepQuant(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, qmin, qmax, step):
        scaled = x / step
        ctx.save_for_backward(scaled, step)
        ctx.bounds = (qmin, qmax)
        return scaled.round().clamp(qmin, qmax) * step

    @staticmethod
    def backward(ctx, grad_out):
        scaled, step = ctx.saved_tensors
        qmin, qmax = ctx.bounds
        below, above = scaled < qmin, scaled > qmax
        inside = ~(below | above)
        grad_x = grad_step = None
        if ctx.needs_input_grad[0]:
            grad_x = grad_out * inside
        if ctx.needs_input_grad[1]:
            d_step = torch.where(inside, scaled.round() - scaled, below * qmin + above * qmax)
            g = 1.0 / math.sqrt(scaled.numel() * max(qmax, 1))
            grad_step = (grad_out * d_step).sum().reshape(step.shape) * g
        return grad_x, None, None, grad_step


class Quantizer(nn.Module):
    def __init__(self, bits, signed, start):
        super().__init__()
        self.qmin = -(2 ** (bits - 1)) if signed else 0
        self.qmax = 2 ** (bits - 1) - 1 if signed else 2 ** bits - 1
        self.step = nn.Parameter(torch.tensor([start]))

    def forward(self, x):
        return LearnedStepQuant.apply(x, self.qmin, self.qmax, self.step)


class QConv(nn.Module):
    def __init__(self, cin, cout, bits=3):
        super().__init__()
        self.conv = nn.Conv1d(cin, cout, 5, padding=2, bias=False)
        self.norm = nn.BatchNorm1d(cout)
        start = 2 * self.conv.weight.abs().mean().item() / math.sqrt(2 ** (bits - 1) - 1)
        self.wq = Quantizer(bits, True, start)
        self.aq = Quantizer(bits, False, 1.0)

    def forward(self, x):
        h = F.conv1d(x, self.wq(self.conv.weight), padding=2)
        return self.aq(F.relu(self.norm(h)))


class WordNet(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.body = nn.Sequential(QConv(N_MELS, width), QConv(width, width), QConv(width, width))
        self.head = nn.Linear(width, N_WORDS)

    def forward(self, x):
        return self.head(self.body(x).mean(dim=2))


def make_words(n, gen):
    y = torch.randint(0, N_WORDS, (n,), generator=gen)
    t = torch.linspace(0, 1, N_FRAMES)
    mel = torch.arange(N_MELS).float()
    centre = 3 + 10 * (0.5 + 0.5 * torch.sin(2 * math.pi * (t[None] * (1 + y[:, None] % 3) + y[:, None] / 6)))
    x = torch.exp(-0.5 * ((mel[None, :, None] - centre[:, None, :]) / 1.5) ** 2)
    return x + 0.6 * torch.randn(x.shape, generator=gen), y


def accuracy(net, x, y):
    net.eval()
    with torch.no_grad():
        acc = (net(x).argmax(1) == y).float().mean().item()
    net.train()
    return acc


def fit(net, x, y, gen, steps=160, batch=48):
    steps_group = [p for n, p in net.named_parameters() if n.endswith("step")]
    rest = [p for n, p in net.named_parameters() if not n.endswith("step")]
    opt = torch.optim.AdamW([
        {"params": rest, "lr": 3e-3, "weight_decay": 1e-4},
        {"params": steps_group, "lr": 5e-3, "weight_decay": 0.0},
    ])
    for i in range(steps):
        idx = torch.randint(0, len(x), (batch,), generator=gen)
        loss = F.cross_entropy(net(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if i % 40 == 0:
            print(f"step {i:4d}  loss {loss.item():.3f}")
    return opt


if __name__ == "__main__":
    torch.manual_seed(5)
    gen = torch.Generator().manual_seed(11)
    train_x, train_y = make_words(900, gen)
    test_x, test_y = make_words(300, gen)
    model = WordNet()
    first_steps = [m.step.item() for m in model.modules() if isinstance(m, Quantizer)]
    optimizer = fit(model, train_x, train_y, gen)
    last_steps = [m.step.item() for m in model.modules() if isinstance(m, Quantizer)]
    print("test accuracy", round(accuracy(model, test_x, test_y), 3))
    print("step sizes", [round(s, 3) for s in last_steps])
