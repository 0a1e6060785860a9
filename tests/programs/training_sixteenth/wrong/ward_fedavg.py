"""Federated training of a small ECG beat classifier across four hospitals.

Raw traces stay at the hospital.  Every round the server sends the model out, the
hospitals train for one epoch and the server forms the sample-weighted average (FedAvg).
"""
import copy

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(21)

N_CLASSES, LENGTH = 4, 96
ROUNDS, BATCH, LR = 8, 32, 0.02
SIZES = [320, 256, 192, 128]


def make_beats(n, gain):
    """Synthetic beats in raw ADC counts: a QRS spike whose width, sign and T wave give the class."""
    label = torch.randint(0, N_CLASSES, (n,))
    t = torch.linspace(-1, 1, LENGTH).expand(n, -1)
    shift = 0.15 * torch.randn(n, 1)
    width = torch.where(label == 1, 0.12, 0.05).unsqueeze(1)
    sign = torch.where(label == 2, -1.0, 1.0).unsqueeze(1)
    t_wave = torch.where(label == 3, -0.5, 0.5).unsqueeze(1)
    beat = sign * torch.exp(-((t - shift) / width) ** 2)
    beat = beat + t_wave * torch.exp(-((t - shift - 0.5) / 0.15) ** 2)
    beat = beat + 0.35 * torch.randn(n, LENGTH)
    return (40.0 + gain * 25.0 * beat).unsqueeze(1), label


class BeatNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.BatchNorm1d(1),
            nn.Conv1d(1, 12, 9, padding=4, bias=False), nn.BatchNorm1d(12), nn.ReLU(), nn.MaxPool1d(4),
            nn.Conv1d(12, 24, 7, padding=3, bias=False), nn.BatchNorm1d(24), nn.ReLU(), nn.MaxPool1d(4),
        )
        self.head = nn.Linear(24 * (LENGTH // 16), N_CLASSES)

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


class Hospital:
    def __init__(self, n, gain):
        self.x, self.y = make_beats(n, gain)

    def train_locally(self, server_model):
        model = copy.deepcopy(server_model).train()
        optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=0.9)
        total = 0.0
        for idx in torch.randperm(len(self.x)).split(BATCH):
            loss = F.cross_entropy(model(self.x[idx]), self.y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(idx)
        return model, total / len(self.x)


@torch.no_grad()
def aggregate(server_model, client_models, sizes):
    """Weighted average of the clients, written into the server's model."""
    weights = [n / sum(sizes) for n in sizes]
    clients = [dict(m.named_parameters()) for m in client_models]
    for name, param in server_model.named_parameters():
        param.copy_(sum(w * c[name] for w, c in zip(weights, clients)))


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(1) == y).float().mean().item()


hospitals = [Hospital(n, gain) for n, gain in zip(SIZES, (0.8, 1.0, 1.1, 1.3))]
test_x, test_y = make_beats(600, 1.0)
server = BeatNet()

for rnd in range(1, ROUNDS + 1):
    client_models, losses = [], []
    for hospital in hospitals:
        model, loss = hospital.train_locally(server)
        client_models.append(model)
        losses.append(loss)
    aggregate(server, client_models, SIZES)
    mean_loss = sum(l * n for l, n in zip(losses, SIZES)) / sum(SIZES)
    print(f"round {rnd}  mean local loss {mean_loss:.4f}  server accuracy {accuracy(server, test_x, test_y):.3f}")

server_acc = accuracy(server, test_x, test_y)
print(f"final server accuracy {server_acc:.3f}")
