"""RealNVP-style flow on 8-D patch statistics; the coupling stack recomputes its inputs instead of storing them."""
import argparse
import math

import torch
import torch.nn as nn


class Coupling(nn.Module):
    def __init__(self, dim, width, parity):
        super().__init__()
        self.parity = parity
        self.net = nn.Sequential(nn.Linear(dim // 2, width), nn.Tanh(), nn.Linear(width, dim))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def split(self, x):
        a, b = x.chunk(2, 1)
        return (a, b) if self.parity == 0 else (b, a)

    def join(self, a, b):
        return torch.cat([a, b] if self.parity == 0 else [b, a], 1)

    def forward(self, x):
        a, b = self.split(x)
        s, t = self.net(a).chunk(2, 1)
        s = 1.5 * torch.tanh(s)
        return self.join(a, b * s.exp() + t), s.sum(1)

    def inverse(self, y):
        a, b = self.split(y)
        s, t = self.net(a).chunk(2, 1)
        s = 1.5 * torch.tanh(s)
        return self.join(a, (b - t) * (-s).exp())


class InvertibleStack(torch.autograd.Function):
    """Keeps only the output of the stack; inputs of each layer are rebuilt from the output on the way back."""

    @staticmethod
    def forward(ctx, x, layers, *params):
        ctx.layers = layers
        logdet = x.new_zeros(len(x))
        with torch.no_grad():
            for layer in layers:
                x, ld = layer(x)
                logdet += ld
        ctx.save_for_backward(x)
        return x, logdet

    @staticmethod
    def backward(ctx, grad_y, grad_logdet):
        (y,) = ctx.saved_tensors
        grads = []
        for layer in reversed(ctx.layers):
            with torch.no_grad():
                x = layer.inverse(y)
            x.requires_grad_()
            with torch.enable_grad():
                out, ld = layer(x)
            got = torch.autograd.grad([out, ld], [x, *layer.parameters()], [grad_y, grad_logdet])
            grad_y, y = got[0], x.detach()
            grads = list(got[1:]) + grads
        return (grad_y, None, *grads)


class Flow(nn.Module):
    def __init__(self, dim, width, depth):
        super().__init__()
        self.dim = dim
        self.layers = nn.ModuleList(Coupling(dim, width, k % 2) for k in range(depth))

    def log_prob(self, x):
        params = [p for layer in self.layers for p in layer.parameters()]
        z, logdet = InvertibleStack.apply(x, self.layers, *params)
        return -0.5 * z.pow(2).sum(1) - 0.5 * self.dim * math.log(2 * math.pi) + logdet


def patch_statistics(n, gen):
    """Correlated, curved data: a latent on a noisy arc, mixed into eight dimensions."""
    u = torch.randn(n, 4, generator=gen)
    v = 0.5 * u.pow(2) - 0.5 + 0.3 * torch.randn(n, 4, generator=gen)
    mix = torch.linalg.qr(torch.randn(8, 8, generator=torch.Generator().manual_seed(7)))[0]
    return torch.cat([u, v], 1) @ mix


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--depth", type=int, default=6)
    parser.add_argument("--lr", type=float, default=3e-3)
    args, _ = parser.parse_known_args()
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(1)
    data, held_out = patch_statistics(4096, gen), patch_statistics(1024, gen)
    flow = Flow(8, 48, args.depth)
    opt = torch.optim.Adam(flow.parameters(), lr=args.lr)
    for step in range(1, args.steps + 1):
        nll = -flow.log_prob(data[torch.randint(0, len(data), (128,), generator=gen)]).mean()
        opt.zero_grad()
        nll.backward()
        opt.step()
        if step % 100 == 0:
            with torch.no_grad():
                print(f"step {step} train nll {nll.item():.3f} val nll {-flow.log_prob(held_out).mean().item():.3f}")
    return flow, held_out


if __name__ == "__main__":
    flow, held_out = main()
