"""A reversible residual network (RevNet / Reformer style) that stores no activations inside its trunk.

The backward pass recomputes the input of every block from its output. The result must be the gradient of ordinary
backpropagation; this is compared before the training starts.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(15)
FREQS, LENGTH, WIDTH, DEPTH = 5, 48, 24, 4


class HalfBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        return self.down(F.gelu(self.up(self.norm(x))))


class ReversibleTrunk(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b, blocks, *params):
        # the parameters are arguments only so that autograd asks for a gradient; they are used through the blocks
        with torch.no_grad():
            for f, g in blocks:
                a = a + f(b)
                b = b + g(a)
        ctx.blocks = blocks
        ctx.save_for_backward(a, b)
        return a, b

    @staticmethod
    def backward(ctx, grad_a, grad_b):
        a, b = ctx.saved_tensors
        found = {}
        for f, g in reversed(list(ctx.blocks)):
            with torch.enable_grad():
                a_leaf = a.detach().requires_grad_(True)
                g_out = g(a_leaf)
            wanted = [a_leaf, *g.parameters()]
            from_g = torch.autograd.grad(g_out, wanted, grad_b)
            grad_a = grad_a + from_g[0]
            b = b - g_out.detach()
            with torch.enable_grad():
                b_leaf = b.detach().requires_grad_(True)
                f_out = f(b_leaf)
            wanted = [b_leaf, *f.parameters()]
            from_f = torch.autograd.grad(f_out, wanted, grad_a)
            grad_b = grad_b + from_f[0]
            a = a - f_out.detach()
            found.update(zip(g.parameters(), from_g[1:]))
            found.update(zip(f.parameters(), from_f[1:]))
        ordered = [found[p] for f, g in ctx.blocks for p in (*f.parameters(), *g.parameters())]
        return (grad_a, grad_b, None, *ordered)


class ToneNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(LENGTH, 2 * WIDTH)
        self.f = nn.ModuleList(HalfBlock(WIDTH) for _ in range(DEPTH))
        self.g = nn.ModuleList(HalfBlock(WIDTH) for _ in range(DEPTH))
        self.head = nn.Linear(2 * WIDTH, FREQS)

    def forward(self, x, reversible=True):
        a, b = self.inp(x).chunk(2, dim=-1)
        blocks = list(zip(self.f, self.g))
        if reversible:
            params = [p for f, g in blocks for p in (*f.parameters(), *g.parameters())]
            a, b = ReversibleTrunk.apply(a, b, blocks, *params)
        else:
            for f, g in blocks:
                a = a + f(b)
                b = b + g(a)
        return self.head(torch.cat([a, b], dim=-1))


def make_tones(n, gen):
    label = torch.randint(0, FREQS, (n,), generator=gen)
    time = torch.arange(LENGTH) / LENGTH
    phase = 6.283 * torch.rand(n, 1, generator=gen)
    wave = torch.sin(6.283 * (2 + label[:, None]) * time + phase)
    return wave + 0.6 * torch.randn(n, LENGTH, generator=gen), label


gen = torch.Generator().manual_seed(7)
model = ToneNet()
x, y = make_tones(32, gen)
exact = torch.autograd.grad(F.cross_entropy(model(x, reversible=False), y), list(model.parameters()))
rebuilt = torch.autograd.grad(F.cross_entropy(model(x), y), list(model.parameters()))
print(f"largest gradient difference {max((a - b).abs().max().item() for a, b in zip(exact, rebuilt)):.1e}")

optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for step in range(250):
    x, y = make_tones(64, gen)
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step:3d}  loss {loss.item():.3f}")
x, y = make_tones(1000, gen)
with torch.no_grad():
    print(f"test accuracy {(model(x).argmax(1) == y).float().mean().item():.3f}")
