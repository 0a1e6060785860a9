"""FedProx over simulated hospitals whose patients differ (readmission risk, non-IID shards)."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3)

HOSPITALS, FEATURES, PER_SITE = 8, 20, 240
ROUNDS, LOCAL_EPOCHS, LR, MU = 8, 4, 0.1, 0.5


def make_sites(generator):
    risk = torch.randn(FEATURES, generator=generator)
    sites = []
    for _ in range(HOSPITALS):
        shift = 1.5 * torch.randn(FEATURES, generator=generator)
        local = risk + 0.8 * torch.randn(FEATURES, generator=generator)
        x = torch.randn(PER_SITE, FEATURES, generator=generator) + shift
        logit = (x - shift) @ local / FEATURES ** 0.5 + 0.8 * torch.sin(2 * x[:, 0])
        y = torch.bernoulli(torch.sigmoid(2 * logit), generator=generator)
        sites.append((x[:200], y[:200], x[200:], y[200:]))
    return sites


class RiskNet(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(FEATURES, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.out(self.body(x)).squeeze(-1)


def proximal_term(model, anchor):
    return sum(((p - a) ** 2).sum() for p, a in zip(model.parameters(), anchor))


def distance(model, reference):
    with torch.no_grad():
        return sum(((p - q) ** 2).sum() for p, q in zip(model.parameters(), reference.parameters())).sqrt().item()


class Client:
    def __init__(self, data):
        self.x, self.y, self.val_x, self.val_y = data
        self.model = RiskNet()

    def local_update(self, server_model, mu):
        self.model.load_state_dict(server_model.state_dict())
        anchor = [p.detach() for p in self.model.parameters()]
        optimizer = torch.optim.SGD(self.model.parameters(), lr=LR, momentum=0.9)
        self.model.train()
        for _ in range(LOCAL_EPOCHS):
            for idx in torch.randperm(len(self.x)).split(40):
                loss = F.binary_cross_entropy_with_logits(self.model(self.x[idx]), self.y[idx])
                loss = loss + 0.5 * mu * proximal_term(self.model, anchor)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        return self.model.state_dict(), len(self.x)


def aggregate(server_model, updates):
    total = sum(n for _, n in updates)
    merged = copy.deepcopy(updates[0][0])
    for key in merged:
        merged[key] = sum(state[key] * (n / total) for state, n in updates)
    server_model.load_state_dict(merged)


@torch.no_grad()
def evaluate(model, clients):
    model.eval()
    losses = [F.binary_cross_entropy_with_logits(model(c.val_x), c.val_y) for c in clients]
    hits = [((model(c.val_x) > 0).float() == c.val_y).float().mean() for c in clients]
    return torch.stack(losses).mean().item(), torch.stack(hits).mean().item()


def main(mu=MU):
    clients = [Client(site) for site in make_sites(torch.Generator().manual_seed(5))]
    server = RiskNet()
    drift = 0.0
    for round_ in range(ROUNDS):
        updates = []
        drifts = []
        for client in clients:
            updates.append(client.local_update(server, mu))
            drifts.append(distance(client.model, server))
        aggregate(server, updates)
        drift = sum(drifts) / len(drifts)
        loss, accuracy = evaluate(server, clients)
        print(f"round {round_}  mean client drift {drift:.3f}  val loss {loss:.4f}  val acc {accuracy:.3f}")
    return server, drift, loss


if __name__ == "__main__":
    main()
