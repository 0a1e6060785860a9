import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


class KeepBest:
    def __init__(self, patience):
        self.patience, self.bad = patience, 0
        self.score, self.weights = float("inf"), None

    def update(self, score, model):
        if score < self.score:
            self.score, self.bad = score, 0
            self.weights = {k: v.detach().clone() for k, v in model.state_dict().items()}
        else:
            self.bad += 1
        return self.bad < self.patience


class WineNet(nn.Module):
    def __init__(self, inputs, hidden, grades):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(inputs, hidden, bias=False), nn.BatchNorm1d(hidden), nn.SiLU(), nn.Linear(hidden, grades)
        )

    def forward(self, x):
        return self.body(x)


def wines(n):
    x = torch.randn(n, 9)
    quality = x[:, 0] + 0.7 * x[:, 1] * x[:, 2] + 0.8 * torch.randn(n)
    return TensorDataset(x, (quality > -0.5).long() + (quality > 0.5).long())


def epoch_loss(model, loader, optimizer=None):
    training = optimizer is not None
    model.train(training)
    total = count = 0
    with torch.set_grad_enabled(training):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            if training:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item() * len(y)
            count += len(y)
    return total / count


def main():
    torch.manual_seed(171)
    fit_set, check_set = random_split(wines(300), [200, 100])
    fit_loader = DataLoader(fit_set, 25, shuffle=True)
    check_loader = DataLoader(check_set, 100)
    model = WineNet(9, 48, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=1.5e-2)
    keeper = KeepBest(patience=5)
    for epoch in range(18):
        fitted = epoch_loss(model, fit_loader, optimizer)
        checked = epoch_loss(model, check_loader)
        print(f"epoch {epoch:2d} fit {fitted:.4f} check {checked:.4f}")
        if not keeper.update(checked, model):
            break
    model.load_state_dict(keeper.weights)
    print(f"best {keeper.score:.4f} restored {epoch_loss(model, check_loader):.4f}")


if __name__ == "__main__":
    main()
