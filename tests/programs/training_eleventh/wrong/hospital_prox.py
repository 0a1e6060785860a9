"""Federated risk prediction over hospitals with very different patients: FedProx with server-side averaging."""
import copy

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(21)

HOSPITALS = 8
FEATURES = 16
ROUNDS = 12
LOCAL_EPOCHS = 12
MU = 0.5


def make_hospital(weights, k):
    """Each hospital sees its own part of the population and codes some of its features in its own way."""
    n = int(torch.randint(60, 160, (1,)))
    shift = 1.5 * torch.randn(FEATURES)
    x = torch.randn(n, FEATURES) + shift
    local = weights + 0.8 * torch.randn(FEATURES)
    logit = x @ local + 0.8 * (x[:, 0] * x[:, 1]) - (x @ local).mean()
    return x, (torch.rand(n) < torch.sigmoid(logit)).float()


def make_population(weights, n):
    x = torch.randn(n, FEATURES) * 1.6
    logit = x @ weights + 0.8 * (x[:, 0] * x[:, 1])
    return x, (torch.rand(n) < torch.sigmoid(logit)).float()


class RiskNet(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(FEATURES, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.out(self.body(x)).squeeze(1)


def proximal_term(model, reference):
    """Half the squared distance from the parameters that the server sent out."""
    total = torch.zeros(())
    for p, r in zip(model.parameters(), reference):
        total = total + (p - r.detach()).pow(2).sum()
    return 0.5 * total


def train_locally(server_model, x, y):
    model = copy.deepcopy(server_model)
    reference = server_model.parameters()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for _ in range(LOCAL_EPOCHS):
        for idx in torch.randperm(len(x)).split(32):
            loss = F.binary_cross_entropy_with_logits(model(x[idx]), y[idx])
            loss = loss + MU * proximal_term(model, reference)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model, len(x)


@torch.no_grad()
def average(server_model, results):
    total = sum(n for _, n in results)
    mean = {k: torch.zeros_like(v) for k, v in server_model.state_dict().items()}
    for model, n in results:
        for k, v in model.state_dict().items():
            mean[k] += v * (n / total)
    server_model.load_state_dict(mean)


@torch.no_grad()
def drift(server_model, results):
    sent = torch.cat([p.flatten() for p in server_model.parameters()])
    gaps = [(torch.cat([p.flatten() for p in m.parameters()]) - sent).norm() for m, _ in results]
    return torch.stack(gaps).mean().item()


true_weights = torch.randn(FEATURES) * 0.7
hospitals = [make_hospital(true_weights, k) for k in range(HOSPITALS)]
test_x, test_y = make_population(true_weights, 3000)

server = RiskNet()
for rnd in range(ROUNDS):
    chosen = torch.randperm(HOSPITALS)[:5].tolist()
    results = [train_locally(server, *hospitals[k]) for k in chosen]
    client_drift = drift(server, results)
    average(server, results)
    with torch.no_grad():
        logits = server(test_x)
    test_loss = F.binary_cross_entropy_with_logits(logits, test_y).item()
    test_acc = ((logits > 0).float() == test_y).float().mean().item()
    if rnd % 3 == 2:
        print(f"round {rnd + 1:2d}  drift {client_drift:.3f}  population loss {test_loss:.3f}  accuracy {test_acc:.3f}")
