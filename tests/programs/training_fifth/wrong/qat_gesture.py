"""Quantisation-aware training of a gesture classifier for a 4-bit microcontroller."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)

BITS = 4


def gestures(n, classes=8, steps=20, gen=None):
    label = torch.randint(classes, (n,), generator=gen)
    t = torch.linspace(0, 1, steps)
    freq = 1 + label % 4
    sign = 1.0 - 2.0 * (label // 4)
    phase = torch.rand(n, 1, generator=gen)
    ax = torch.sin(6.28 * (freq[:, None] * t + phase))
    ay = sign[:, None] * torch.cos(6.28 * (freq[:, None] * t + phase))
    x = torch.cat([ax, ay], dim=1)
    return x + 0.3 * torch.randn(x.shape, generator=gen), label


def fake_quant(w, bits=BITS):
    top = 2 ** (bits - 1) - 1
    scale = w.abs().amax(dim=1, keepdim=True).clamp(min=1e-8) / top
    return torch.round(w / scale).clamp(-top, top) * scale


class GestureNet(nn.Module):
    def __init__(self, inputs=40, hidden=64, classes=8):
        super().__init__()
        self.fc1 = nn.Linear(inputs, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.fc3 = nn.Linear(hidden, classes)

    def quantise(self):
        for layer in (self.fc1, self.fc2, self.fc3):
            layer.weight.data = fake_quant(layer.weight.data)

    def forward(self, x):
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return self.fc3(x)


class QATRun:
    def __init__(self, lr=2e-3, momentum=0.9, epochs=25, seed=6):
        torch.manual_seed(seed)
        gen = torch.Generator().manual_seed(seed)
        self.train_set = gestures(800, gen=gen)
        self.test_set = gestures(400, gen=gen)
        self.model = GestureNet()
        self.opt = torch.optim.SGD(self.model.parameters(), lr=lr, momentum=momentum)
        self.epochs = epochs

    def train_epoch(self):
        x, y = self.train_set
        self.model.train()
        total = 0.0
        for idx in torch.randperm(len(x)).split(40):
            self.model.quantise()
            loss = F.cross_entropy(self.model(x[idx]), y[idx])
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            total += loss.item()
        return total / 20

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        self.model.quantise()
        x, y = self.test_set
        return (self.model(x).argmax(1) == y).float().mean().item()

    def run(self):
        for epoch in range(self.epochs):
            loss = self.train_epoch()
            if epoch % 5 == 4:
                print(f"epoch {epoch + 1:2d}  loss {loss:.4f}  int{BITS} accuracy {self.evaluate():.3f}")
        return self.evaluate()


job = QATRun()
final = job.run()
levels = [len(layer.weight[0].unique()) for layer in (job.model.fc1, job.model.fc2, job.model.fc3)]
print("levels used by the first row of each layer:", levels)
print(f"int{BITS} accuracy {final:.3f}")
