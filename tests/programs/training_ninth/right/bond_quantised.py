"""A message-passing net on random molecules, trained to run on a 5-bit sensor node (activations are rounded)."""
import torch
from torch import nn

KINDS, ATOMS, LEVELS = 5, 9, 15


def molecules(n, gen):
    kind = torch.randint(0, KINDS, (n, ATOMS), generator=gen)
    upper = torch.triu(torch.rand(n, ATOMS, ATOMS, generator=gen) < 0.25, diagonal=1)
    adj = (upper | upper.transpose(1, 2)).float()
    charge = torch.tensor([-1.0, -0.4, 0.0, 0.5, 1.2])[kind]
    dipole = (adj * (charge[:, :, None] - charge[:, None]).abs()).sum((1, 2)) / ATOMS
    strain = (adj.sum(2) - 2).clamp(min=0).sum(1) / ATOMS
    y = dipole - strain + 0.02 * torch.randn(n, generator=gen)
    return kind, adj, y[:, None]


class Rounding:
    """Replaces a layer's output by its rounded version; the range is tracked while training."""

    def __init__(self, momentum=0.05):
        self.momentum = momentum
        self.high = {}
        self.handles = []

    def attach(self, module, name):
        self.high[name] = torch.tensor(1.0)

        def hook(mod, inputs, out):
            if mod.training:
                peak = out.detach().abs().amax()
                self.high[name].lerp_(peak, self.momentum)
            scale = self.high[name] / LEVELS
            snapped = (out.detach() / scale).round().clamp(-LEVELS, LEVELS) * scale
            return out + (snapped - out.detach())

        self.handles.append(module.register_forward_hook(hook))

    def remove(self):
        for h in self.handles:
            h.remove()


class Message(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.send = nn.Linear(width, width)
        self.cell = nn.GRUCell(width, width)

    def forward(self, h, adj):
        m = adj @ torch.relu(self.send(h))
        return self.cell(m.flatten(0, 1), h.flatten(0, 1)).view_as(h)


class BondNet(nn.Module):
    def __init__(self, width=32, rounds=3):
        super().__init__()
        self.embed = nn.Embedding(KINDS, width)
        self.message = Message(width)
        self.rounds = rounds
        self.readout = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, kind, adj):
        h = self.embed(kind)
        for _ in range(self.rounds):
            h = self.message(h, adj)
        return self.readout(h).sum(1)


def error(model, data):
    model.eval()
    with torch.no_grad():
        kind, adj, y = data
        return (model(kind, adj) - y).abs().mean().item()


def main(steps=350):
    torch.manual_seed(4)
    gen = torch.Generator().manual_seed(4)
    train, test = molecules(1500, gen), molecules(400, gen)
    model, rounding = BondNet(), Rounding()
    rounding.attach(model.embed, "embed")
    rounding.attach(model.message, "message")
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=8e-3, total_steps=steps)
    for step in range(steps):
        model.train()
        idx = torch.randint(0, 1500, (64,), generator=gen)
        kind, adj, y = (t[idx] for t in train)
        loss = nn.functional.smooth_l1_loss(model(kind, adj), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 2.0)
        optimizer.step()
        scheduler.step()
        if step % 70 == 0:
            print(f"{step:4d}  loss {loss.item():.4f}  range {rounding.high['message'].item():.2f}")
    rounded = error(model, test)
    rounding.remove()
    return rounded, error(model, test), test[2].std().item()


if __name__ == "__main__":
    rounded, free, spread = main()
    print(f"test error rounded {rounded:.4f}  unrounded {free:.4f}  (target spread {spread:.3f})")
