"""Recognizes bird calls in short spectrogram windows with a 1-D convolutional net. The activations of the
convolutional layers are kept sparse by a small L1 penalty, so that the features can be read by the ornithologists."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(21)

SPECIES, BINS, FRAMES = 5, 24, 40
SPARSITY = 0.05


def make_calls(n, gen):
    """A call is a short sweep over the frequency bins: start, slope and curvature depend on the species."""
    start = torch.tensor([4.0, 18.0, 10.0, 6.0, 14.0])
    slope = torch.tensor([0.5, -0.5, 0.0, 0.9, -0.2])
    bend = torch.tensor([0.0, 0.01, 0.04, -0.03, -0.02])
    y = torch.randint(0, SPECIES, (n,), generator=gen)
    t = torch.arange(FRAMES).float()
    onset = torch.randint(0, 18, (n, 1), generator=gen)
    local = t[None] - onset
    pitch = start[y][:, None] + slope[y][:, None] * local + bend[y][:, None] * local ** 2
    pitch = pitch + 1.5 * torch.randn(n, 1, generator=gen)
    sounding = ((local >= 0) & (local < 20)).float()
    bins = torch.arange(BINS).float()[None, :, None]
    spec = torch.exp(-0.5 * (bins - pitch[:, None]) ** 2) * sounding[:, None] * 1.5
    return spec + 0.5 * torch.randn(n, BINS, FRAMES, generator=gen), y


class CallNet(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.conv1 = nn.Conv1d(BINS, width, 5, padding=2)
        self.act1 = nn.ReLU()
        self.conv2 = nn.Conv1d(width, width, 5, padding=2, stride=2)
        self.act2 = nn.ReLU()
        self.head = nn.Linear(width, SPECIES)

    def forward(self, x):
        x = self.act1(self.conv1(x))
        x = self.act2(self.conv2(x))
        return self.head(x.amax(dim=2))


class ActivityMeter:
    """Collects the mean absolute activation of the watched layers during a forward pass."""

    def __init__(self):
        self.values = []

    def watch(self, model):
        for module in model.modules():
            if isinstance(module, nn.ReLU):
                module.register_forward_hook(self.record)

    def record(self, module, inputs, output):
        self.values.append(output.abs().mean())

    def total(self):
        total = torch.stack(self.values).sum()
        self.values.clear()
        return total


def run_epoch(model, opt, meter, x, y, batch_size=64):
    model.train()
    meter.watch(model)
    ce_sum, sparsity_sum, hits = 0.0, 0.0, 0
    for idx in torch.randperm(len(x)).split(batch_size):
        logits = model(x[idx])
        ce = F.cross_entropy(logits, y[idx])
        activity = meter.total()
        loss = ce + SPARSITY * activity
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        ce_sum += ce.item() * len(idx)
        sparsity_sum += activity.item() * len(idx)
        hits += (logits.argmax(1) == y[idx]).sum().item()
    return ce_sum / len(x), sparsity_sum / len(x), hits / len(x)


@torch.no_grad()
def evaluate(model, meter, x, y):
    model.eval()
    logits = model(x)
    meter.values.clear()
    return F.cross_entropy(logits, y).item(), (logits.argmax(1) == y).float().mean().item()


if __name__ == "__main__":
    gen = torch.Generator().manual_seed(8)
    x_train, y_train = make_calls(1200, gen)
    x_test, y_test = make_calls(600, gen)
    model = CallNet()
    meter = ActivityMeter()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(20):
        ce, activity, acc = run_epoch(model, opt, meter, x_train, y_train)
        test_ce, test_acc = evaluate(model, meter, x_test, y_test)
        if epoch % 5 == 4:
            print(f"epoch {epoch + 1:2d}  ce {ce:.4f}  activity {activity:.4f}  test ce {test_ce:.4f}  acc {test_acc:.3f}")
