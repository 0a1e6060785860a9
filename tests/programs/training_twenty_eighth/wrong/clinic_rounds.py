"""Federated averaging over five clinics: a small classifier of readmission risk, trained without moving the records."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(11)

FEATURES = 12
CLASSES = 4
CLINICS = 5
ROUNDS = 12
LOCAL_EPOCHS = 4
BATCH = 32


class RiskNet(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.norm = nn.LayerNorm(FEATURES)
        self.hidden = nn.Linear(FEATURES, hidden)
        self.out = nn.Linear(hidden, CLASSES)

    def forward(self, x):
        return self.out(F.relu(self.hidden(self.norm(x))))


class Clinic:
    """One site: its own records and its own mixture of risk classes."""

    def __init__(self, name, centers, mixture, size):
        self.name = name
        self.y = torch.multinomial(mixture, size, replacement=True)
        self.x = centers[self.y] + 1.6 * torch.randn(size, FEATURES)

    def __len__(self):
        return len(self.y)

    def batches(self):
        for index in torch.randperm(len(self)).split(BATCH):
            yield self.x[index], self.y[index]


def make_clinics(centers):
    clinics = []
    for i in range(CLINICS):
        mixture = torch.full((CLASSES,), 0.02)
        mixture[i % CLASSES] = 0.94
        clinics.append(Clinic(f"clinic-{i}", centers, mixture, size=120 + 40 * i))
    return clinics


def train_locally(net, clinic, lr):
    net.train()
    optimizer = torch.optim.SGD(net.parameters(), lr=lr, momentum=0.9)
    total, seen = 0.0, 0
    for _ in range(LOCAL_EPOCHS):
        for x, y in clinic.batches():
            loss = F.cross_entropy(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(y)
            seen += len(y)
    return total / seen


def weighted_average(states, sizes):
    total = float(sum(sizes))
    return {
        key: sum(state[key] * (size / total) for state, size in zip(states, sizes))
        for key in states[0]
    }


@torch.no_grad()
def evaluate(net, x, y):
    net.eval()
    return (net(x).argmax(dim=1) == y).float().mean().item()


def federate(server, clinics, x_test, y_test):
    worker = RiskNet()
    history = []
    for round_ in range(ROUNDS):
        lr = 0.05 if round_ < ROUNDS // 2 else 0.02
        states, sizes, losses = [], [], []
        for clinic in clinics:
            worker.load_state_dict(server.state_dict())
            losses.append(train_locally(worker, clinic, lr))
            states.append(worker.state_dict())
            sizes.append(len(clinic))
        server.load_state_dict(weighted_average(states, sizes))
        accuracy = evaluate(server, x_test, y_test)
        history.append(accuracy)
        mean_loss = sum(losses) / len(losses)
        print(f"round {round_:2d}  local loss {mean_loss:.3f}  server accuracy {accuracy:.3f}")
    return history


def main():
    centers = torch.randn(CLASSES, FEATURES)
    clinics = make_clinics(centers)
    y_test = torch.randint(0, CLASSES, (600,))
    x_test = centers[y_test] + 1.6 * torch.randn(600, FEATURES)
    server = RiskNet()
    print(f"before training: accuracy {evaluate(server, x_test, y_test):.3f}")
    history = federate(server, clinics, x_test, y_test)
    for clinic in clinics:
        print(f"{clinic.name}: {len(clinic)} records, accuracy {evaluate(server, clinic.x, clinic.y):.3f}")
    print(f"final accuracy {history[-1]:.3f}, best {max(history):.3f}")
    return server, history


if __name__ == "__main__":
    server, history = main()
