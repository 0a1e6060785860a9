"""Survival after lesion screening: a small network reads a 16x16 lesion patch and three clinical covariates and is
trained with the Cox partial likelihood (Breslow form). Follow-up ends early for many patients.
"""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(21)


def make_cohort(n):
    """Risk grows with lesion size and with age; frail patients tend to leave the study early."""
    radius = torch.rand(n) * 5.0 + 1.5
    grid = torch.arange(16.0) - 7.5
    dist = (grid[None, :, None] ** 2 + grid[None, None, :] ** 2).sqrt().expand(n, 16, 16)
    patch = torch.sigmoid(2.0 * (radius[:, None, None] - dist)) + 0.3 * torch.randn(n, 16, 16)
    clinical = torch.randn(n, 3)
    age, frailty = clinical[:, 0], clinical[:, 1]
    hazard = torch.exp(0.7 * (radius - 4.0) + 0.5 * age)
    death = torch.distributions.Exponential(hazard).sample()
    leave = torch.distributions.Exponential(1.2 * torch.exp(1.2 * frailty)).sample()
    time = torch.minimum(death, leave)
    return TensorDataset(patch[:, None], clinical, time, (death <= leave).float()), death


class LesionNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.image = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
        )
        self.head = nn.Sequential(nn.Linear(64 + 3, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 1))

    def forward(self, patch, clinical):
        return self.head(torch.cat([self.image(patch), clinical], dim=1))


def cox_loss(log_risk, time, event):
    """Negative log partial likelihood, averaged over the observed deaths."""
    order = torch.argsort(time, descending=True)
    log_risk, event = log_risk[order], event[order]
    log_at_risk = torch.logcumsumexp(log_risk, dim=0)
    return -((log_risk - log_at_risk) * event).sum() / event.sum().clamp(min=1.0)


def concordance(log_risk, time, event):
    """Harrell's C: the share of comparable pairs in which the patient who died earlier had the higher risk."""
    first = (time[:, None] < time[None, :]) & (event[:, None] > 0)
    higher = (log_risk[:, None] > log_risk[None, :]).float()
    return (higher * first).sum().item() / first.sum().item()


@torch.no_grad()
def evaluate(model, data, death):
    model.eval()
    patch, clinical, time, event = data.tensors
    risk = model(patch, clinical).squeeze(1)
    observed = concordance(risk, time, event)
    full = concordance(risk, death, torch.ones_like(death))
    frailty_weight = torch.corrcoef(torch.stack([risk, clinical[:, 1]]))[0, 1].item()
    model.train()
    return observed, full, frailty_weight


def main():
    train, _ = make_cohort(1000)
    test, test_death = make_cohort(500)
    events = train.tensors[3].mean().item()
    print(f"{len(train)} patients, {events:.0%} with an observed death")
    model = LesionNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    loader = DataLoader(train, batch_size=100, shuffle=True, drop_last=True)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=4e-3, total_steps=15 * len(loader))
    for epoch in range(15):
        for patch, clinical, time, event in loader:
            loss = cox_loss(model(patch, clinical), time, event)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            scheduler.step()
        if epoch % 5 == 4:
            observed, full, _ = evaluate(model, test, test_death)
            print(f"epoch {epoch + 1:2d}  C on follow-up {observed:.3f}  C on true survival {full:.3f}")
    observed, full, frailty = evaluate(model, test, test_death)
    print(f"final: C {observed:.3f}, true C {full:.3f}, correlation of risk with frailty {frailty:.3f}")
    return observed, full, frailty


if __name__ == "__main__":
    main()
