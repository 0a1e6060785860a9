"""A hypernetwork that writes the weights of a small signal net for every member of a family of damped waves.

A member is given by (frequency, damping).  The hypernetwork maps it to an offset of all weights of the signal net; the
weights the signal net was built with are the common starting point.
"""
import torch
from torch import nn
from torch.func import functional_call, vmap


class SignalNet(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.first = nn.Linear(1, width)
        self.second = nn.Linear(width, width)
        self.last = nn.Linear(width, 1)

    def forward(self, t):
        hidden = torch.tanh(self.second(torch.sin(3.0 * self.first(t))))
        return self.last(hidden)


class HyperNet(nn.Module):
    def __init__(self, template, width=64):
        super().__init__()
        template.requires_grad_(False)
        self.names = [name for name, _ in template.named_parameters()]
        self.shapes = [p.shape for p in template.parameters()]
        self.sizes = [p.numel() for p in template.parameters()]
        self.trunk = nn.Sequential(nn.Linear(2, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU())
        self.head = nn.Linear(width, sum(self.sizes))
        nn.init.zeros_(self.head.weight)
        with torch.no_grad():
            self.head.bias.copy_(nn.utils.parameters_to_vector(template.parameters()))

    def forward(self, member):
        flat = self.head(self.trunk(member))
        pieces = flat.split(self.sizes, dim=-1)
        return {
            name: piece.unflatten(-1, shape)
            for name, piece, shape in zip(self.names, pieces, self.shapes)
        }


def family(count, generator):
    frequency = 0.5 + 1.0 * torch.rand(count, 1, generator=generator)
    damping = 0.2 + 1.3 * torch.rand(count, 1, generator=generator)
    return torch.cat([frequency, damping], dim=1)


def waves(member, t):
    frequency, damping = member[:, 0].view(-1, 1, 1), member[:, 1].view(-1, 1, 1)
    return torch.exp(-damping * t) * torch.cos(2.0 * torch.pi * frequency * t)


def evaluate(hypernet, signals, member):
    t = torch.linspace(0.0, 1.0, 50).view(1, 50, 1).expand(len(member), 50, 1)
    hypernet.eval()
    with torch.no_grad():
        error = (signals(hypernet(member), t) - waves(member, t)).pow(2).mean().item()
    hypernet.train()
    return error


def main():
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(2)
    template = SignalNet()
    hypernet = HyperNet(template)
    signals = vmap(lambda weights, t: functional_call(template, weights, (t,)))

    optimizer = torch.optim.Adam(hypernet.parameters(), lr=5e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(0.05, 1.0 - step / 160))
    held_out = family(32, generator)
    first_error = evaluate(hypernet, signals, held_out)
    for step in range(160):
        member = family(32, generator)
        t = torch.rand(32, 20, 1, generator=generator)
        loss = (signals(hypernet(member), t) - waves(member, t)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(hypernet.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 40 == 0:
            print(f"step {step:3d}  loss {loss.item():.4f}  new members {evaluate(hypernet, signals, held_out):.4f}")
    last_error = evaluate(hypernet, signals, held_out)
    print(f"error on new members {first_error:.4f} -> {last_error:.4f}")
    return template, hypernet, first_error, last_error


if __name__ == "__main__":
    template, hypernet, first_error, last_error = main()
