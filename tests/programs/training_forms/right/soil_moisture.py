import torch
from torch import nn

torch.manual_seed(37)


def scaled_descent(named, lr=4e-3, keep=0.95, eps=1e-6):
    named = dict(named)
    squares = {name: torch.zeros_like(p) for name, p in named.items()}

    @torch.no_grad()
    def advance():
        for name, p in named.items():
            if p.grad is None:
                continue
            level = torch.lerp(p.grad.square(), squares[name], keep)
            squares[name] = level
            p.sub_(lr * p.grad / (level.sqrt() + eps))
            p.grad = None

    return advance


class Probe(nn.Module):
    def __init__(self, bands=12):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(bands, 40), nn.Linear(40, 40), nn.Linear(40, 1)])

    def forward(self, spectrum):
        h = spectrum
        for i, layer in enumerate(self.layers):
            h = layer(h)
            if i + 1 < len(self.layers):
                h = torch.nn.functional.elu(h)
        return h[:, 0]


spectrum = torch.rand(800, 12)
moisture = (spectrum[:, 2] - spectrum[:, 7]) / (spectrum[:, 2] + spectrum[:, 7] + 0.3) + 0.02 * torch.randn(800)

probe = Probe()
advance = scaled_descent(probe.named_parameters())
for epoch in range(10):
    order = torch.randperm(800)
    total = 0.0
    for pick in order.split(80):
        loss = torch.nn.functional.huber_loss(probe(spectrum[pick]), moisture[pick])
        loss.backward()
        advance()
        total += loss.item() / 10
    if epoch % 3 == 0:
        print(f"epoch {epoch} loss {total:.5f}")
