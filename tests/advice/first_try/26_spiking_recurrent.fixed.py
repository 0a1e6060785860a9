import torch
import torch.nn as nn
import torch.nn.functional as F


class TriangleSpike(torch.autograd.Function):
    width = 0.6

    @staticmethod
    def forward(ctx, v, threshold):
        ctx.v = v
        ctx.threshold = threshold
        return (v >= threshold).to(v.dtype)

    @staticmethod
    def backward(ctx, grad_out):
        dist = (ctx.v - ctx.threshold).abs() / TriangleSpike.width
        return grad_out * torch.relu(1 - dist) / TriangleSpike.width, None


class RecurrentLIF(nn.Module):
    def __init__(self, n_in, n_hidden, tau=0.85, threshold=1.0):
        super().__init__()
        self.inp = nn.Linear(n_in, n_hidden)
        self.rec = nn.Linear(n_hidden, n_hidden, bias=False)
        nn.init.normal_(self.rec.weight, std=0.1)
        self.tau = tau
        self.threshold = threshold
        self.n_hidden = n_hidden

    def reset(self, batch):
        self.v = torch.zeros(batch, self.n_hidden)
        self.s = torch.zeros(batch, self.n_hidden)

    def forward(self, x):
        self.v = self.tau * self.v + self.inp(x) + self.rec(self.s)
        self.s = TriangleSpike.apply(self.v, self.threshold)
        self.v = self.v - self.threshold * self.s.detach()
        return self.s


class Classifier(nn.Module):
    def __init__(self, n_in, n_hidden, classes):
        super().__init__()
        self.cell = RecurrentLIF(n_in, n_hidden)
        self.out = nn.Linear(n_hidden, classes)

    def forward(self, seq):
        self.cell.reset(seq.shape[1])
        rates = 0
        total = 0
        for frame in seq:
            s = self.cell(frame)
            total = total + s.mean()
            rates = rates + self.out(s)
        return rates / len(seq), total / len(seq)


def make_batch(protos, batch, steps):
    y = torch.randint(0, protos.shape[0], (batch,))
    drift = torch.linspace(0.5, 1.5, steps)[:, None, None]
    x = protos[y][None] * drift + 0.4 * torch.randn(steps, batch, protos.shape[1])
    return x, y


def main():
    torch.manual_seed(8)
    protos = torch.randn(5, 12)
    net = Classifier(12, 32, 5)
    opt = torch.optim.Adam(net.parameters(), lr=4e-3)
    for it in range(40):
        x, y = make_batch(protos, 48, 15)
        logits, rate = net(x)
        loss = F.cross_entropy(logits, y) + 0.1 * (rate - 0.15).pow(2)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if it % 8 == 0 or it == 39:
            print(f"iter {it} loss {loss.item():.4f} rate {rate.item():.3f}")


if __name__ == "__main__":
    main()
