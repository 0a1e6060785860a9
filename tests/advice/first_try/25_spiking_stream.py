import torch
import torch.nn as nn
import torch.nn.functional as F


class Heaviside(torch.autograd.Function):
    @staticmethod
    def forward(ctx, u):
        ctx.save_for_backward(u)
        return (u > 0).float()

    @staticmethod
    def backward(ctx, grad):
        (u,) = ctx.saved_tensors
        return grad * torch.clamp(1.0 - u.abs(), min=0.0)


class LIFLayer(nn.Module):
    def __init__(self, n_in, n_out, decay=0.8):
        super().__init__()
        self.fc = nn.Linear(n_in, n_out)
        self.decay = decay
        self.v = None

    def forward(self, x):
        if self.v is None:
            self.v = x.new_zeros(x.shape[0], self.fc.out_features)
        self.v = self.decay * self.v + self.fc(x)
        s = Heaviside.apply(self.v - 1.0)
        self.v = self.v - s.detach()
        return s

    def detach_state(self):
        self.v = self.v.detach()


class LeakyReadout(nn.Module):
    def __init__(self, n_in, n_out, decay=0.6):
        super().__init__()
        self.fc = nn.Linear(n_in, n_out)
        self.decay = decay
        self.trace = None

    def forward(self, s):
        i = self.fc(s)
        last = torch.zeros_like(i) if self.trace is None else self.trace
        self.trace = self.decay * last + (1 - self.decay) * i
        return self.trace


class StreamNet(nn.Module):
    def __init__(self, n_in=4, hidden=20, n_out=1):
        super().__init__()
        self.lif_layers = nn.ModuleList([LIFLayer(n_in, hidden), LIFLayer(hidden, hidden)])
        self.readout = LeakyReadout(hidden, n_out)

    def forward(self, x):
        for layer in self.lif_layers:
            x = layer(x)
        return self.readout(x)

    def truncate(self):
        for layer in self.lif_layers:
            layer.detach_state()


def signal(batch, length):
    phase = torch.rand(batch, 1) * 6.28
    t = torch.arange(length).float() * 0.15
    freq = torch.tensor([1.0, 1.7, 2.3, 3.1])
    x = torch.sin(t[None, :, None] * freq + phase[..., None]) * 2
    return x, x[..., :2].mean(-1, keepdim=True)


def main(window=10):
    torch.manual_seed(4)
    net = StreamNet()
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    x, target = signal(16, 400)
    recent = []
    for start in range(0, 400, window):
        outs = [net(x[:, t]) for t in range(start, start + window)]
        pred = torch.stack(outs, 1)
        loss = F.mse_loss(pred, target[:, start : start + window])
        opt.zero_grad()
        loss.backward()
        opt.step()
        net.truncate()
        recent.append(loss.item())
        if len(recent) == 8:
            print(f"window {start // window} loss {sum(recent) / 8:.4f}")
            recent.clear()


if __name__ == "__main__":
    main()
