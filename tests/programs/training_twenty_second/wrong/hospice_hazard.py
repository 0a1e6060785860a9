"""Deep survival model (Cox partial likelihood, Breslow ties) on a synthetic palliative-care cohort."""
import numpy as np
import torch
import torch.nn as nn

N_FEATURES = 10
BATCH = 128
EPOCHS = 20


def simulate_cohort(n, rng):
    x = rng.normal(size=(n, N_FEATURES))
    log_hazard = 0.9 * x[:, 0] - 0.7 * x[:, 1] + 0.6 * np.tanh(2 * x[:, 2]) * x[:, 3]
    t_event = rng.exponential(np.exp(-log_hazard))
    t_censor = rng.exponential(np.exp(-(1.5 * x[:, 4] - 0.3)))  # discharge home, mostly of the fitter ones
    time = np.minimum(t_event, t_censor)
    event = (t_event <= t_censor).astype(np.float32)
    as_tensor = lambda a: torch.as_tensor(a, dtype=torch.float32)
    return as_tensor(x), as_tensor(time), as_tensor(event)


class RiskNet(nn.Module):
    def __init__(self, width=32, p_drop=0.1):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(N_FEATURES, width), nn.LayerNorm(width), nn.GELU(), nn.Dropout(p_drop),
            nn.Linear(width, width), nn.GELU(),
            nn.Linear(width, 1, bias=False),  # the baseline hazard absorbs a constant
        )

    def forward(self, x):
        return self.layers(x).squeeze(-1)


class CoxLoss(nn.Module):
    """Negative log partial likelihood per observed event.

    With the patients in descending order of time, the risk set of a patient is everybody up to and including
    himself, so that a running logsumexp gives all denominators at once.
    """

    def forward(self, log_risk, time, event):
        order = torch.argsort(time, descending=True)
        log_risk = log_risk[order]
        log_denominator = torch.logcumsumexp(log_risk, dim=0)
        log_lik = (log_risk - log_denominator) * event
        return -log_lik.sum() / event.sum().clamp(min=1)


def concordance(log_risk, time, event):
    """Harrell's C: of the comparable pairs, the part where the earlier death had the higher risk."""
    earlier = (time[:, None] < time[None, :]) & (event[:, None] == 1)
    diff = log_risk[:, None] - log_risk[None, :]
    good = (diff[earlier] > 0).float().sum() + 0.5 * (diff[earlier] == 0).float().sum()
    return (good / earlier.sum()).item()


def fit(model, cohort, valid, criterion):
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    history = []
    for epoch in range(1, EPOCHS + 1):
        model.train()
        running, seen = 0.0, 0
        for idx in torch.randperm(len(cohort[0])).split(BATCH):
            if len(idx) < BATCH:  # a small risk set is too noisy
                continue
            x, time, event = (part[idx] for part in cohort)
            loss = criterion(model(x), time, event)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            running += loss.item()
            seen += 1
        model.eval()
        with torch.no_grad():
            c_index = concordance(model(valid[0]), valid[1], valid[2])
        history.append((running / seen, c_index))
        if epoch % 5 == 0:
            print(f"epoch {epoch:2d}: partial likelihood loss {running / seen:.4f}, C-index (valid) {c_index:.3f}")
    return history


if __name__ == "__main__":
    torch.manual_seed(11)
    rng = np.random.default_rng(11)
    train_set, valid_set = simulate_cohort(900, rng), simulate_cohort(500, rng)
    print(f"{len(train_set[0])} patients, {int(train_set[2].sum())} observed deaths")
    net, cox = RiskNet(), CoxLoss()
    history = fit(net, train_set, valid_set, cox)
    final_c = history[-1][1]
    print(f"C-index after training: {final_c:.3f}")
