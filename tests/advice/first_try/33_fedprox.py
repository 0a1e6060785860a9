import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class ClientModel(nn.Module):
    def __init__(self, n_in=10, hidden=16, classes=4):
        super().__init__()
        self.fc1 = nn.Linear(n_in, hidden)
        self.fc2 = nn.Linear(hidden, classes)

    def forward(self, x):
        return self.fc2(F.relu(self.fc1(x)))


class ProximalTerm:
    def __init__(self, mu):
        self.mu = mu
        self.last = 0.0

    def __call__(self, model, anchor):
        total = 0.0
        for p, a in zip(model.parameters(), anchor):
            total += (p - a).pow(2).sum().item()
        self.last = 0.5 * self.mu * total
        return self.last


class Client:
    def __init__(self, x, y, mu):
        self.x, self.y = x, y
        self.prox = ProximalTerm(mu)

    def update(self, global_model, epochs=4, lr=0.1):
        model = copy.deepcopy(global_model)
        anchor = [p.detach().clone() for p in global_model.parameters()]
        opt = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.5)
        for _ in range(epochs):
            for xb, yb in zip(self.x.split(20), self.y.split(20)):
                loss = F.cross_entropy(model(xb), yb) + self.prox(model, anchor)
                opt.zero_grad()
                loss.backward()
                opt.step()
        return model.state_dict(), loss.item(), self.prox.last


class Server:
    def __init__(self, model, clients):
        self.model = model
        self.clients = clients

    def round(self):
        results = [c.update(self.model) for c in self.clients]
        sizes = torch.tensor([float(len(c.y)) for c in self.clients])
        weights = (sizes / sizes.sum()).tolist()
        averaged = {
            k: sum(w * state[k] for w, (state, _, _) in zip(weights, results)) for k in self.model.state_dict()
        }
        self.model.load_state_dict(averaged)
        n = len(results)
        return sum(r[1] for r in results) / n, sum(r[2] for r in results) / n


def make_clients(n_clients, mu):
    centers = torch.randn(4, 10)
    clients = []
    for c in range(n_clients):
        n = 40 + 20 * c
        y = torch.where(torch.rand(n) < 0.7, torch.full((n,), c % 4), torch.randint(0, 4, (n,)))
        clients.append(Client(centers[y] + torch.randn(n, 10), y, mu))
    return clients


def main():
    torch.manual_seed(14)
    server = Server(ClientModel(), make_clients(4, mu=1.0))
    for rnd in range(6):
        loss, prox = server.round()
        print(f"round {rnd} loss {loss:.4f} prox {prox:.4f}")


if __name__ == "__main__":
    main()
