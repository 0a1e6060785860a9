import torch
import torch.nn as nn
import torch.nn.functional as F


class FastSigmoidSpike(torch.autograd.Function):
    @staticmethod
    def forward(ctx, membrane, threshold, slope):
        shifted = membrane - threshold
        ctx.save_for_backward(shifted)
        ctx.slope = slope
        return (shifted > 0).to(membrane.dtype)

    @staticmethod
    def backward(ctx, grad_output):
        (shifted,) = ctx.saved_tensors
        surrogate = 1.0 / (1.0 + ctx.slope * shifted.abs()) ** 2
        grad_membrane = grad_output * surrogate
        grad_threshold = -grad_membrane.sum(0)
        return grad_membrane, grad_threshold, None


class AdaptiveLIF(nn.Module):
    def __init__(self, size, beta=0.9, slope=10.0):
        super().__init__()
        self.beta = beta
        self.slope = slope
        self.threshold = nn.Parameter(torch.full((size,), 0.5))

    def forward(self, current, membrane):
        membrane = self.beta * membrane + current
        spike = FastSigmoidSpike.apply(membrane, self.threshold, self.slope)
        membrane = membrane - spike.detach() * self.threshold
        return spike, membrane


class SpikingNet(nn.Module):
    def __init__(self, n_in, n_hidden, n_out):
        super().__init__()
        self.fc1 = nn.Linear(n_in, n_hidden)
        self.lif = AdaptiveLIF(n_hidden)
        self.fc2 = nn.Linear(n_hidden, n_out)
        self.hidden = n_hidden

    def forward(self, spikes_in):
        steps, batch, _ = spikes_in.shape
        membrane = torch.zeros(batch, self.hidden)
        readout = 0.0
        for t in range(steps):
            spike, membrane = self.lif(self.fc1(spikes_in[t]), membrane)
            readout = readout + self.fc2(spike)
        return readout / steps


def rate_encode(x, steps, gen):
    return (torch.rand(steps, *x.shape, generator=gen) < torch.sigmoid(x)).float()


def main():
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(9)
    net = SpikingNet(10, 24, 3)
    opt = torch.optim.Adam(
        [
            {"params": list(net.fc1.parameters()) + list(net.fc2.parameters()), "lr": 1e-2},
            {"params": [net.lif.threshold], "lr": 2e-3},
        ]
    )
    centers = 2.0 * torch.randn(3, 10)
    for step in range(25):
        y = torch.randint(0, 3, (32,), generator=gen)
        x = centers[y] + 0.3 * torch.randn(32, 10, generator=gen)
        loss = F.cross_entropy(net(rate_encode(x, 12, gen)), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        with torch.no_grad():
            net.lif.threshold.clamp_(0.05, 2.0)
        if step % 6 == 0:
            print(f"step {step} loss {loss.item():.4f} thr {net.lif.threshold.mean().item():.4f}")


if __name__ == "__main__":
    main()
