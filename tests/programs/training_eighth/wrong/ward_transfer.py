"""Risk model for a small ward, on top of an encoder trained with a large hospital table; the hospital head stays in use."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

FEATURES = 24


def patient_table(n, seed, shift=0.0, scale=1.0, task="mortality"):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, FEATURES))
    w = np.random.default_rng(99).normal(size=(3, FEATURES)) / np.sqrt(FEATURES)
    latent = np.tanh(1.5 * x @ w.T)
    if task == "mortality":
        score = 2.5 * latent[:, 0] - 2.0 * latent[:, 1] + 1.5 * latent[:, 0] * latent[:, 2]
    else:
        score = 2.0 * latent[:, 1] + 2.0 * latent[:, 2]
    y = score + 0.4 * rng.normal(size=n) > 0
    offset = shift * np.linspace(-1, 1, FEATURES)
    x = scale * x + offset
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)


class RecordEncoder(nn.Module):
    def __init__(self, width=48, out=16):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(FEATURES, width), nn.BatchNorm1d(width), nn.ReLU(),
            nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU(),
            nn.Linear(width, out),
        )

    def forward(self, x):
        return self.layers(x)


class RiskModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = RecordEncoder()
        self.mortality = nn.Linear(16, 1)
        self.readmission = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, x, task):
        return getattr(self, task)(self.encoder(x)).squeeze(1)


def fit(model, task, x, y, params, epochs, lr, gen):
    opt = torch.optim.AdamW(params, lr=lr, weight_decay=1e-3)
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(x), generator=gen).split(64):
            loss = F.binary_cross_entropy_with_logits(model(x[idx], task), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
        if (epoch + 1) % 5 == 0:
            print(f"{task} epoch {epoch + 1} loss {total / len(x):.3f}")


@torch.no_grad()
def auroc(model, task, x, y):
    model.eval()
    s = model(x, task)
    pos, neg = s[y > 0.5], s[y < 0.5]
    return (pos.unsqueeze(1) > neg.unsqueeze(0)).float().mean().item()


def freeze(module):
    for p in module.parameters():
        p.requires_grad_(False)
    module.eval()


def main():
    torch.manual_seed(8)
    gen = torch.Generator().manual_seed(8)
    hospital = patient_table(2000, 1)
    hospital_test = patient_table(600, 2)
    ward = patient_table(400, 3, shift=1.5, scale=1.3, task="readmission")
    ward_test = patient_table(400, 4, shift=1.5, scale=1.3, task="readmission")

    model = RiskModel()
    first = list(model.encoder.parameters()) + list(model.mortality.parameters())
    fit(model, "mortality", *hospital, first, epochs=10, lr=3e-3, gen=gen)
    before = auroc(model, "mortality", *hospital_test)
    with torch.no_grad():
        reference = model(hospital_test[0], "mortality")

    freeze(model.encoder)
    freeze(model.mortality)
    fit(model, "readmission", *ward, model.readmission.parameters(), epochs=20, lr=3e-3, gen=gen)

    after = auroc(model, "readmission", *ward_test)
    print(f"hospital mortality AUROC {before:.3f}, ward readmission AUROC {after:.3f}")
    return model, hospital_test, reference, before


if __name__ == "__main__":
    model, hospital_test, reference, before = main()
