import copy
from dataclasses import dataclass, field

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class EarlyStopping:
    patience: int = 12
    best: float = float("inf")
    epoch: int = -1
    weights: dict = field(default_factory=dict)
    config: dict = field(default_factory=dict)

    def update(self, epoch, score, model, settings):
        if score < self.best:
            self.best, self.epoch = score, epoch
            self.weights = {k: v.detach().cpu() for k, v in model.state_dict().items()}
            self.config = copy.deepcopy(settings)
        return epoch - self.epoch >= self.patience

    def restore(self, model):
        model.load_state_dict(self.weights)
        return self.config


class ChurnNet(nn.Module):
    def __init__(self, n_features, width=96):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(n_features, width), nn.ReLU(),
            nn.Linear(width, width), nn.ReLU(),
        )
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(self.body(x)).squeeze(-1)


def make_split(n_train=60, n_val=200, n_features=20):
    x = torch.randn(n_train + n_val, n_features)
    logit = 1.2 * x[:, 0] - x[:, 1] + 0.8 * x[:, 2]
    y = torch.bernoulli(torch.sigmoid(logit))
    return (x[:n_train], y[:n_train]), (x[n_train:], y[n_train:])


@torch.no_grad()
def validate(model, data):
    model.eval()
    x, y = data
    return F.binary_cross_entropy_with_logits(model(x), y).item()


def train_epoch(model, optimizer, data, batch_size=20):
    model.train()
    x, y = data
    for idx in torch.randperm(len(x)).split(batch_size):
        loss = F.binary_cross_entropy_with_logits(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main():
    torch.manual_seed(3)
    train, val = make_split()
    settings = {"lr": 3e-3, "width": 96}
    model = ChurnNet(20, settings["width"])
    optimizer = torch.optim.Adam(model.parameters(), lr=settings["lr"])
    stopper = EarlyStopping()
    for epoch in range(60):
        train_epoch(model, optimizer, train)
        score = validate(model, val)
        if epoch % 5 == 0:
            print(f"epoch {epoch} val {score:.4f}")
        if stopper.update(epoch, score, model, settings):
            break
    stopper.restore(model)
    print(f"best epoch {stopper.epoch} of {epoch}, exporting model")
    return model, stopper, val


if __name__ == "__main__":
    model, stopper, val = main()
