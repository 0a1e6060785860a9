"""Transfer learning on synthetic ECG beats: pretrain on rhythm, then fine-tune on ST changes with gradual unfreezing."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

LENGTH, BATCH = 96, 32
PRETRAIN_EPOCHS, HEAD_EPOCHS, STAGE_EPOCHS = 4, 4, 6


def bump(t, centre, width, height):
    return height * np.exp(-0.5 * ((t - centre) / width) ** 2)


def simulate_beats(n, rng):
    """Returns beats, the rhythm class (beat width) and the ST class (normal, elevated, depressed)."""
    t = np.arange(LENGTH, dtype=np.float64)
    rhythm = rng.integers(0, 3, size=n)
    st_class = rng.integers(0, 3, size=n)
    beats = np.zeros((n, 1, LENGTH), dtype=np.float32)
    for i in range(n):
        centre = 38 + rng.normal(0, 3)
        width = 1.5 + 1.2 * rhythm[i]
        st = (0.0, 0.3, -0.3)[st_class[i]]
        beat = bump(t, centre - 18, 4, 0.3) + bump(t, centre, width, 1.6 * rng.uniform(0.8, 1.2))
        beat += bump(t, centre + 14, 4, st) + bump(t, centre + 32, 6, 0.5 * rng.uniform(0.6, 1.4))
        drift = rng.normal(0, 0.3) * np.sin(2 * np.pi * t / LENGTH + rng.uniform(0, 6.28))
        beats[i, 0] = beat + drift + rng.normal(0, 0.12, size=LENGTH)
    return torch.from_numpy(beats), torch.from_numpy(rhythm), torch.from_numpy(st_class)


def conv_stage(c_in, c_out):
    return nn.Sequential(nn.Conv1d(c_in, c_out, 7, padding=3), nn.GroupNorm(4, c_out), nn.ReLU(), nn.MaxPool1d(2))


class ECGNet(nn.Module):
    def __init__(self, n_classes, width=16):
        super().__init__()
        self.stages = nn.ModuleList([conv_stage(1, width), conv_stage(width, width), conv_stage(width, 2 * width)])
        self.head = nn.Linear(4 * width, n_classes)

    def forward(self, x):
        for stage in self.stages:
            x = stage(x)
        return self.head(torch.cat([x.mean(dim=2), x.amax(dim=2)], dim=1))


def run_epochs(model, optimizer, x, y, epochs):
    model.train()
    for _ in range(epochs):
        total = 0.0
        for idx in torch.randperm(len(x)).split(BATCH):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(idx)
    return total / len(x)


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(1) == y).float().mean().item()


def fine_tune(model, train, test):
    for stage in model.stages:
        stage.requires_grad_(False)
    optimizer = torch.optim.AdamW(
        (p for p in model.parameters() if p.requires_grad), lr=2e-3, weight_decay=1e-3
    )
    loss = run_epochs(model, optimizer, *train, epochs=HEAD_EPOCHS)
    print(f"head only            loss {loss:.4f} test acc {accuracy(model, *test):.4f}")

    for depth in reversed(range(len(model.stages))):
        model.stages[depth].requires_grad_(True)
        loss = run_epochs(model, optimizer, *train, epochs=STAGE_EPOCHS)
        trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
        print(f"down to stage {depth} ({trainable:5d}) loss {loss:.4f} test acc {accuracy(model, *test):.4f}")
    return accuracy(model, *test)


def main():
    torch.manual_seed(8)
    rng = np.random.default_rng(8)
    big_x, big_rhythm, _ = simulate_beats(600, rng)
    train_x, _, train_st = simulate_beats(240, rng)
    test_x, _, test_st = simulate_beats(400, rng)

    model = ECGNet(n_classes=3)
    pretrain_opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    loss = run_epochs(model, pretrain_opt, big_x, big_rhythm, PRETRAIN_EPOCHS)
    print(f"pretraining on rhythm loss {loss:.4f}")
    pretrained = {k: v.clone() for k, v in model.state_dict().items()}

    model.head = nn.Linear(model.head.in_features, 3)
    test_acc = fine_tune(model, (train_x, train_st), (test_x, test_st))
    return model, pretrained, test_acc


if __name__ == "__main__":
    model, pretrained, test_acc = main()
    print(f"final test accuracy {test_acc:.4f}")
