"""Federated averaging over unequal clinics, a few of which take part in every round."""
import argparse
import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

N_FEATURES, N_CLASSES = 24, 5


class Clinic:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __len__(self):
        return len(self.y)

    def train(self, global_model, epochs, lr, batch_size=32):
        """Local SGD from the current global weights."""
        model = copy.deepcopy(global_model)
        model.train()
        optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        total, steps = 0.0, 0
        for _ in range(epochs):
            for rows in torch.randperm(len(self)).split(batch_size):
                loss = F.cross_entropy(model(self.x[rows]), self.y[rows])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total, steps = total + loss.item(), steps + 1
        return model.state_dict(), total / steps


def make_data(n_clinics, seed):
    rng = np.random.default_rng(seed)
    teacher = rng.normal(size=(N_FEATURES, N_CLASSES))
    bend = rng.normal(size=(N_FEATURES, N_CLASSES))

    def draw(count, shift):
        x = rng.normal(size=(count, N_FEATURES)) + shift
        logits = x @ teacher + 1.5 * np.sin(x) @ bend
        y = (logits + rng.gumbel(size=logits.shape)).argmax(1)
        return torch.tensor(x, dtype=torch.float32), torch.tensor(y)

    sizes = rng.integers(60, 260, size=n_clinics)
    clinics = [Clinic(*draw(int(n), rng.normal(scale=0.3, size=N_FEATURES))) for n in sizes]
    return clinics, draw(2000, 0.0)


class Server:
    def __init__(self, clinics, model):
        self.clinics = clinics
        self.model = model
        self.n_samples = sum(len(c) for c in clinics)

    def aggregate(self, updates):
        """Weighted average of the clinics' states; weights follow the number of samples."""
        average = {}
        for state, count in updates:
            weight = count / self.n_samples
            for name, value in state.items():
                average[name] = average.get(name, 0) + weight * value
        return average

    def round(self, per_round, epochs, lr, rng):
        chosen = rng.choice(len(self.clinics), size=per_round, replace=False)
        updates, losses = [], []
        for k in chosen:
            state, loss = self.clinics[k].train(self.model, epochs, lr)
            updates.append((state, len(self.clinics[k])))
            losses.append(loss)
        self.model.load_state_dict(self.aggregate(updates))
        return float(np.mean(losses))

    @torch.no_grad()
    def evaluate(self, x, y):
        self.model.eval()
        logits = self.model(x)
        return F.cross_entropy(logits, y).item(), (logits.argmax(1) == y).float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--per-round", type=int, default=6)
    parser.add_argument("--local-epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=0.03)
    args = parser.parse_args([])
    torch.manual_seed(1)
    clinics, test = make_data(n_clinics=12, seed=4)
    model = nn.Sequential(nn.Linear(N_FEATURES, 48), nn.ReLU(), nn.Linear(48, N_CLASSES))
    server = Server(clinics, model)
    rng = np.random.default_rng(9)
    for r in range(args.rounds):
        local_loss = server.round(args.per_round, args.local_epochs, args.lr, rng)
        test_loss, test_acc = server.evaluate(*test)
        if (r + 1) % 5 == 0:
            print(f"round {r + 1:2d}  local loss {local_loss:.3f}  test loss {test_loss:.3f}  test acc {test_acc:.3f}")
    return server, test_loss, test_acc


if __name__ == "__main__":
    server, test_loss, test_acc = main()
