"""Survival model on simulated tumour patients: a Cox risk head next to a stage classifier on a shared trunk."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

SEED = 17
N_PATIENTS = 1200
N_FEATURES = 12
N_STAGES = 3
EPOCHS = 15
BATCH = 128

torch.manual_seed(SEED)


def simulate(n):
    """Gene scores, censored survival times and the stage at diagnosis."""
    x = torch.randn(n, N_FEATURES)
    log_risk = 1.2 * x[:, 0] - 0.9 * x[:, 1] + 0.8 * x[:, 2] * x[:, 3]
    time = -torch.log(torch.rand(n)) * torch.exp(-log_risk)
    censor = -torch.log(torch.rand(n)) * 2.0
    event = (time <= censor).float()
    stage_score = x[:, 4] + 0.7 * x[:, 5] + 0.4 * torch.randn(n)
    stage = torch.bucketize(stage_score, torch.tensor([-0.6, 0.6]))
    return x, torch.minimum(time, censor), event, stage


class RiskModel(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(N_FEATURES, hidden), nn.BatchNorm1d(hidden), nn.ReLU(),
            nn.Linear(hidden, hidden), nn.ReLU(),
        )
        self.risk = nn.Linear(hidden, 1, bias=False)
        self.stage = nn.Linear(hidden, N_STAGES)

    def forward(self, x):
        h = self.trunk(x)
        return self.risk(h), self.stage(h)


def cox_loss(log_risk, time, event):
    """Negative partial log-likelihood (Breslow); the risk set of a patient is everyone who is observed at least as long."""
    order = torch.argsort(time, descending=True)
    log_risk, event = log_risk[order], event[order].unsqueeze(-1)
    log_risk_set = torch.logcumsumexp(log_risk, dim=-1)
    return -((log_risk - log_risk_set) * event).sum() / event.sum().clamp(min=1)


def concordance(log_risk, time, event):
    """Share of comparable pairs in which the patient who dies first has the higher risk."""
    r, t, e = log_risk.numpy().ravel(), time.numpy(), event.numpy() > 0
    comparable = e[:, None] & (t[:, None] < t[None, :])
    wins = (r[:, None] > r[None, :]) + 0.5 * (r[:, None] == r[None, :])
    return float(np.sum(wins * comparable) / np.sum(comparable))


def evaluate(model, data):
    x, time, event, stage = data
    model.eval()
    with torch.no_grad():
        log_risk, logits = model(x)
    accuracy = (logits.argmax(1) == stage).float().mean().item()
    return concordance(log_risk, time, event), accuracy


train_data = simulate(N_PATIENTS)
test_data = simulate(500)
loader = DataLoader(TensorDataset(*train_data), batch_size=BATCH, shuffle=True, drop_last=True)

model = RiskModel()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)

for epoch in range(EPOCHS):
    model.train()
    totals = torch.zeros(2)
    for x, time, event, stage in loader:
        log_risk, logits = model(x)
        survival = cox_loss(log_risk, time, event)
        staging = F.cross_entropy(logits, stage)
        loss = survival + 0.5 * staging
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        totals += torch.stack([loss.detach(), staging.detach()])
    if epoch % 5 == 4:
        mean = totals / len(loader)
        print(f"epoch {epoch + 1}: loss {mean[0]:.4f} stage loss {mean[1]:.4f}")

c_index, accuracy = evaluate(model, test_data)
print(f"test concordance {c_index:.3f} stage accuracy {accuracy:.3f}")
