"""Server and clients in one process: local training on copies of the weights, and a server optimizer on their mean."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call

torch.manual_seed(17)


class Net(nn.Module):
    """Global body shared by all; each client keeps its own small head, which never leaves the client."""

    def __init__(self, width=40):
        super().__init__()
        self.register_buffer("freqs", torch.tensor([0.5, 1.0, 2.0]))
        self.a = nn.Linear(6, width)
        self.b = nn.Linear(width, width)
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        wave = x * self.freqs
        h = torch.tanh(self.a(torch.cat([wave.sin(), wave.cos()], -1)))
        return self.head(torch.tanh(self.b(h)))


class Client:
    def __init__(self, seed, net):
        gen = torch.Generator().manual_seed(seed)
        self.amp, self.shift = torch.rand(2, generator=gen) + 0.5
        self.count = int(torch.randint(24, 64, (1,), generator=gen))
        self.x = torch.rand(self.count, 1, generator=gen) * 6 - 3
        self.y = self.truth(self.x) + 0.05 * torch.randn(self.count, 1, generator=gen)
        self.head = {n: p.detach().clone().requires_grad_() for n, p in net.named_parameters() if n.startswith("head")}
        self.velocity = {n: torch.zeros_like(p) for n, p in self.head.items()}

    def truth(self, x):
        return self.amp * torch.sin(2 * x) + self.shift * torch.cos(x)

    def local_round(self, net, steps=5, lr=0.1):
        body = {n: p.detach().clone().requires_grad_() for n, p in net.named_parameters() if n not in self.head}
        for _ in range(steps):
            loss = F.mse_loss(functional_call(net, {**body, **self.head}, (self.x,)), self.y)
            names = list(body) + list(self.head)
            grads = torch.autograd.grad(loss, [{**body, **self.head}[n] for n in names])
            with torch.no_grad():
                for n, g in zip(names, grads):
                    if n in body:
                        body[n] -= lr * g
                    else:
                        self.velocity[n].mul_(0.5).add_(g)
                        self.head[n] -= lr * self.velocity[n]
        return {n: p.detach() for n, p in body.items()}, loss.item()

    @torch.no_grad()
    def error(self, net):
        x = torch.linspace(-3, 3, 61)[:, None]
        body = {n: p for n, p in net.named_parameters() if n not in self.head}
        return F.mse_loss(functional_call(net, {**body, **self.head}, (x,)), self.truth(x)).item()


net = Net()
net.head.requires_grad_(False)
clients = [Client(seed, net) for seed in range(12)]
server = torch.optim.Adam([p for p in net.parameters() if p.requires_grad], lr=0.02, betas=(0.8, 0.99))
rounds = 120
schedule = torch.optim.lr_scheduler.LambdaLR(server, lambda r: 0.5 * (1 + math.cos(math.pi * r / rounds)))
start = sum(c.error(net) for c in clients) / len(clients)

for r in range(rounds):
    picked = [clients[i] for i in torch.randperm(len(clients))[:6].tolist()]
    size = sum(c.count for c in picked)
    server.zero_grad(set_to_none=True)
    for client in picked:
        local, loss = client.local_round(net)
        for n, p in net.named_parameters():
            if n in local:
                step = (p.detach() - local[n]) * (client.count / size)
                p.grad = step if p.grad is None else p.grad + step
    server.step()
    schedule.step()

end = sum(c.error(net) for c in clients) / len(clients)
print(f"mean client error before {start:.4f} after {end:.4f}; parameters with a server gradient: "
      f"{sum(p.grad is not None for p in net.parameters())} of {len(list(net.parameters()))}")
