import torch
from torch import nn
from torch.autograd import Function


class RoundClip(Function):
    @staticmethod
    def forward(ctx, x, scale, limit):
        ctx.limit = limit
        q = x / scale
        ctx.save_for_backward(q)
        return q.round().clamp(-limit, limit) * scale

    @staticmethod
    def backward(ctx, grad):
        (q,) = ctx.saved_tensors
        outside = q.abs() > ctx.limit
        return grad.masked_fill(outside, 0), None, None


class FakeQuant(nn.Module):
    def __init__(self, bits, span):
        super().__init__()
        self.limit = 2 ** (bits - 1) - 1
        self.scale = span / self.limit

    def forward(self, x):
        return RoundClip.apply(x, self.scale, self.limit)


class ResidualUnit(nn.Module):
    def __init__(self, ch):
        super().__init__()
        self.skip = nn.Conv1d(ch, ch, 1)
        self.conv = nn.Conv1d(ch, ch, 5, padding=2)
        self.quant = FakeQuant(bits=4, span=0.5)

    def forward(self, x):
        return self.skip(x) + self.quant(self.conv(torch.relu(x)))


class KeywordNet(nn.Module):
    def __init__(self, mels=16, words=6):
        super().__init__()
        self.units = nn.Sequential(nn.Conv1d(mels, 24, 1), ResidualUnit(24), ResidualUnit(24))
        self.head = nn.Linear(24, words)

    def forward(self, mel):
        return self.head(self.units(mel).amax(-1))


def main():
    torch.manual_seed(12)
    keys = torch.randn(6, 16, 10)
    net = KeywordNet()
    opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    loss_fn = nn.CrossEntropyLoss(label_smoothing=0.05)
    for step in range(1, 101):
        y = torch.randint(0, 6, (48,))
        mel = keys[y] + 1.2 * torch.randn(48, 16, 10)
        loss = loss_fn(net(mel), y)
        opt.zero_grad()
        loss.backward()
        if step == 1:
            print(f"skip grad {net.units[1].skip.weight.grad.norm().item():.5f}")
        opt.step()
        if step % 25 == 0:
            print(f"step {step} loss {loss.item():.4f}")


main()
