"""Federated credit scoring over bank branches with FedProx.

The branches see very different customers (segment mix and default rate), so every local run is held near the
weights that the server sent out by a proximal term, mu / 2 * ||w - w_server||^2. A few branches join each round.
"""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 5
N_BRANCHES, PER_ROUND, ROUNDS = 20, 4, 25
LOCAL_EPOCHS, BATCH, LR = 8, 32, 0.2
MU = 0.3
N_FEATURES, N_SEGMENTS = 12, 5

torch.manual_seed(SEED)
rng = np.random.default_rng(SEED)

segment_center = rng.normal(0, 1.2, (N_SEGMENTS, N_FEATURES))
segment_coef = rng.normal(0, 1.0, (N_SEGMENTS, N_FEATURES))


def applicants(n, mix):
    seg = rng.choice(N_SEGMENTS, size=n, p=mix)
    x = segment_center[seg] + rng.standard_normal((n, N_FEATURES))
    logit = ((x - segment_center[seg]) * segment_coef[seg]).sum(1) + 2.5 * np.sin(3 * seg)
    y = rng.random(n) < 1 / (1 + np.exp(-logit))
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)


class ScoreCard(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(N_FEATURES, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1)
        )

    def forward(self, x):
        return self.net(x).squeeze(-1)


class Branch:
    def __init__(self, mix, n):
        self.x, self.y = applicants(n, mix)
        self.model = ScoreCard()

    def local_update(self, server_weights, mu):
        self.model.load_state_dict(server_weights)
        anchor = [p.detach() for p in self.model.parameters()]
        opt = torch.optim.SGD(self.model.parameters(), lr=LR)
        self.model.train()
        for _ in range(LOCAL_EPOCHS):
            for rows in torch.randperm(len(self.y)).split(BATCH):
                loss = F.binary_cross_entropy_with_logits(self.model(self.x[rows]), self.y[rows])
                prox = sum(((p - a) ** 2).sum() for p, a in zip(self.model.parameters(), anchor))
                opt.zero_grad()
                (loss + 0.5 * mu * prox).backward()
                opt.step()
        return {k: v.clone() for k, v in self.model.state_dict().items()}, len(self.y)


def aggregate(updates):
    total = sum(n for _, n in updates)
    return {k: sum(w[k] * (n / total) for w, n in updates) for k in updates[0][0]}


def drift(weights, reference):
    return sum(((weights[k] - reference[k]) ** 2).sum().item() for k in reference) ** 0.5


@torch.no_grad()
def test(model, x, y):
    model.eval()
    logit = model(x)
    loss = F.binary_cross_entropy_with_logits(logit, y).item()
    return loss, ((logit > 0).float() == y).float().mean().item()


branches = [Branch(rng.dirichlet([0.15] * N_SEGMENTS), int(rng.integers(80, 300))) for _ in range(N_BRANCHES)]
test_x, test_y = applicants(4000, [1 / N_SEGMENTS] * N_SEGMENTS)
server = ScoreCard()
losses, drifts = [], []
for rnd in range(ROUNDS):
    sent = {k: v.clone() for k, v in server.state_dict().items()}
    chosen = rng.choice(N_BRANCHES, PER_ROUND, replace=False)
    updates = [branches[i].local_update(sent, MU) for i in chosen]
    drifts.append(float(np.mean([drift(w, sent) for w, _ in updates])))
    server.load_state_dict(aggregate(updates))
    loss, acc = test(server, test_x, test_y)
    losses.append(loss)
    if rnd % 5 == 4:
        print(f"round {rnd + 1:2d}  test loss {loss:.4f}  accuracy {acc:.3f}  mean client drift {drifts[-1]:.3f}")
print(f"mean test loss of the last 10 rounds {np.mean(losses[-10:]):.4f}")
