"""Condition monitoring of ball bearings: classifies vibration snippets into healthy / inner race / outer race / ball
fault. The network is a port of the Keras model that the plant has been using."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(17)
rng = np.random.default_rng(17)

CLASSES = ["healthy", "inner", "outer", "ball"]
FAULT_HZ = [0.0, 162.0, 107.0, 141.0]
RATE, SAMPLES = 2000.0, 256


def make_snippets(n):
    """Impacts at the fault frequency ring a resonance; load and gain vary a lot from machine to machine."""
    t = np.arange(SAMPLES) / RATE
    labels = rng.integers(0, len(CLASSES), n)
    x = np.empty((n, 1, SAMPLES), dtype=np.float32)
    for i, c in enumerate(labels):
        signal = 0.8 * rng.normal(size=SAMPLES) + np.sin(2 * np.pi * 29.0 * t + rng.uniform(0, 6.28))
        if c > 0:
            for hit in np.arange(rng.uniform(0, 1 / FAULT_HZ[c]), t[-1], 1 / FAULT_HZ[c]):
                dt = np.clip(t - hit, 0, None)
                signal += 2.2 * (t >= hit) * np.exp(-dt * 450) * np.cos(2 * np.pi * 640 * dt)
        x[i, 0] = signal * np.exp(rng.normal(0, 0.6))
    return torch.from_numpy(x), torch.from_numpy(labels)


def conv_block(c_in, c_out, kernel, stride):
    return nn.Sequential(
        nn.Conv1d(c_in, c_out, kernel, stride=stride, padding=kernel // 2, bias=False),
        nn.BatchNorm1d(c_out, eps=1e-3, momentum=0.99),
        nn.ReLU(),
    )


class BearingNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            conv_block(1, 12, 15, 2),
            conv_block(12, 24, 9, 2),
            conv_block(24, 32, 5, 2),
        )
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(32, len(CLASSES)))
        for m in self.modules():
            if isinstance(m, (nn.Conv1d, nn.Linear)):
                nn.init.xavier_uniform_(m.weight)

    def forward(self, x):
        return self.head(self.features(x).mean(dim=2))


@torch.no_grad()
def validate(model, x, y):
    model.eval()
    logits = torch.cat([model(part) for part in x.split(200)])
    return F.cross_entropy(logits, y).item(), (logits.argmax(1) == y).float().mean().item()


def train_epoch(model, opt, x, y, batch_size):
    model.train()
    loss_sum, hits, seen = 0.0, 0, 0
    for idx in torch.randperm(len(x)).split(batch_size):
        if len(idx) < batch_size:
            continue
        logits = model(x[idx])
        loss = F.cross_entropy(logits, y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        loss_sum += loss.item() * len(idx)
        hits += (logits.argmax(1) == y[idx]).sum().item()
        seen += len(idx)
    return loss_sum / seen, hits / seen


def main(epochs=8, batch_size=8):
    x_train, y_train = make_snippets(1000)
    x_valid, y_valid = make_snippets(500)
    model = BearingNet()
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=epochs)
    history = []
    for epoch in range(epochs):
        train_loss, train_acc = train_epoch(model, opt, x_train, y_train, batch_size)
        valid_loss, valid_acc = validate(model, x_valid, y_valid)
        sched.step()
        history.append((train_loss, train_acc, valid_loss, valid_acc))
        print(f"epoch {epoch + 1:2d}  train {train_loss:.4f} {train_acc:.3f}  valid {valid_loss:.4f} {valid_acc:.3f}")
    return model, history


if __name__ == "__main__":
    model, history = main()
