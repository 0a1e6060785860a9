"""Federated demand model for a chain of pharmacies: a shared body moved by a server-side Adam, a personal head per site."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3)

FEATURES = 10
SITES = 4
ROUNDS = 30
LOCAL_STEPS = 8


class DemandNet(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(FEATURES, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.head = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.head(self.body(x)).squeeze(1)


class Site:
    def __init__(self, shared, shift):
        own = shared + shift * torch.randn(FEATURES)
        self.x = torch.randn(240, FEATURES)
        self.y = self.x @ own + torch.sin(2 * self.x[:, 0]) + shift * torch.randn(1) + 0.1 * torch.randn(240)
        self.head = None

    def sample(self, size=32):
        index = torch.randint(0, len(self.y), (size,))
        return self.x[index], self.y[index]


def local_update(net, site, lr=0.05):
    """A few SGD steps on body and head; nothing of the optimizer survives the visit."""
    optimizer = torch.optim.SGD(net.parameters(), lr=lr)
    loss = None
    for _ in range(LOCAL_STEPS):
        x, y = site.sample()
        loss = F.mse_loss(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


class Server:
    """FedAdam: the mean movement of the sites is treated as a negative gradient of the body."""

    def __init__(self, body, lr=0.02):
        self.body = body
        self.optimizer = torch.optim.Adam(body.parameters(), lr=lr, betas=(0.9, 0.99), eps=1e-3)

    def apply(self, movements, weights):
        for i, p in enumerate(self.body.parameters()):
            p.grad = -sum(w * m[i] for w, m in zip(weights, movements))
        self.optimizer.step()


def movement(local_body, server_body):
    return [
        local.data - center.data
        for local, center in zip(local_body.parameters(), server_body.parameters())
    ]


def visit(worker, server, site, first_head):
    worker.body.load_state_dict(server.body.state_dict())
    worker.head.load_state_dict(first_head if site.head is None else site.head)
    loss = local_update(worker, site)
    site.head = copy.deepcopy(worker.head.state_dict())
    return movement(worker.body, server.body), loss


@torch.no_grad()
def network_error(worker, server, sites):
    errors = []
    worker.body.load_state_dict(server.body.state_dict())
    for site in sites:
        worker.head.load_state_dict(site.head)
        errors.append(F.mse_loss(worker(site.x), site.y).item())
    return sum(errors) / len(errors)


def main():
    shared = torch.randn(FEATURES) * 0.5
    sites = [Site(shared, 0.15) for _ in range(SITES)]
    worker = DemandNet()
    first_head = copy.deepcopy(worker.head.state_dict())
    server = Server(copy.deepcopy(worker.body))
    start = [p.detach().clone() for p in server.body.parameters()]
    errors = []
    for round_ in range(ROUNDS):
        order = torch.randperm(SITES).tolist()
        results = [visit(worker, server, sites[i], first_head) for i in order]
        sizes = torch.tensor([float(len(sites[i].y)) for i in order])
        server.apply([m for m, _ in results], (sizes / sizes.sum()).tolist())
        errors.append(network_error(worker, server, sites))
        if round_ % 5 == 4:
            print(f"round {round_ + 1:2d}  mean error over the sites {errors[-1]:.4f}")
    moved = [(p.detach() - s).norm().item() for p, s in zip(server.body.parameters(), start)]
    print("movement of the shared body:", [round(m, 3) for m in moved])
    return server, sites, errors, moved


if __name__ == "__main__":
    server, sites, errors, moved = main()
