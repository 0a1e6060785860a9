"""Deep proportional-hazards model on a simulated oncology cohort with imaging features.

Follow-up ends with an event or with censoring; frail patients leave the study earlier.  The network
is trained on the negative partial log-likelihood of mini-cohorts and scored with the concordance index.
"""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SEED, N, D = 3, 1600, 12


def simulate(rng):
    x = rng.normal(size=(N, D)).astype(np.float32)
    log_hazard = 1.0 * x[:, 0] + 0.8 * np.tanh(2 * x[:, 1]) - 0.5 * x[:, 2] ** 2
    frailty = 1.6 * x[:, 3] - 1.2 * x[:, 0]
    t_event = rng.exponential(1.0, N) / np.exp(log_hazard)
    t_censor = rng.exponential(0.7, N) / np.exp(frailty)
    time = np.minimum(t_event, t_censor).astype(np.float32)
    event = (t_event <= t_censor).astype(np.float32)
    return torch.from_numpy(x), torch.from_numpy(time), torch.from_numpy(event), torch.from_numpy(log_hazard)


class HazardNet(nn.Module):
    def __init__(self, dim, hidden=48):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(dim, hidden), nn.SiLU(), nn.Dropout(0.1),
            nn.Linear(hidden, hidden), nn.SiLU(),
            nn.Linear(hidden, 1, bias=False),
        )

    def forward(self, x):
        return self.net(x)


def partial_likelihood(risk, time, event):
    """Breslow form: every event is compared with the patients still under observation."""
    order = torch.argsort(time, descending=True)
    risk, event = risk[order], event[order]
    log_at_risk = torch.logcumsumexp(risk, dim=0)
    contribution = (risk - log_at_risk) * event
    return -contribution.mean()


def concordance(risk, time, event):
    earlier = (time.unsqueeze(1) < time.unsqueeze(0)) & (event.unsqueeze(1) > 0)
    difference = risk.unsqueeze(1) - risk.unsqueeze(0)
    score = (difference > 0).float() + 0.5 * (difference == 0).float()
    return (score * earlier).sum().item() / earlier.sum().item()


@torch.no_grad()
def evaluate(model, x, time, event, log_hazard):
    model.eval()
    risk = model(x).squeeze(1)
    model.train()
    c_index = concordance(risk, time, event)
    correlation = torch.corrcoef(torch.stack([risk, log_hazard.float()]))[0, 1].item()
    return c_index, correlation


def main():
    torch.manual_seed(SEED)
    x, time, event, log_hazard = simulate(np.random.default_rng(SEED))
    cut = 1200
    train = TensorDataset(x[:cut], time[:cut], event[:cut])
    test = (x[cut:], time[cut:], event[cut:], log_hazard[cut:])
    loader = DataLoader(train, batch_size=150, shuffle=True, drop_last=True)

    model = HazardNet(D)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=5e-3, total_steps=25 * len(loader))

    print(f"{int(event.sum())} events among {N} patients")
    for epoch in range(25):
        total = 0.0
        for xb, tb, eb in loader:
            loss = partial_likelihood(model(xb), tb, eb)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            total += loss.item()
        if epoch % 6 == 0:
            c_index, correlation = evaluate(model, *test)
            print(f"epoch {epoch:2d}  loss {total / len(loader):.4f}  c-index {c_index:.3f}")
    c_index, correlation = evaluate(model, *test)
    print(f"test c-index {c_index:.3f}  correlation with the simulated log-hazard {correlation:.3f}")
    return c_index, correlation


if __name__ == "__main__":
    scores = main()
