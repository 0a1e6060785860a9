"""Predicts the goal point and path of an agent from its history."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class HistoryEncoder(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.embed = nn.Linear(2, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)

    def forward(self, track):
        _, last = self.rnn(F.relu(self.embed(track)))
        return last.squeeze(0)


class Predictor(nn.Module):
    def __init__(self, dim=16, horizon=4):
        super().__init__()
        self.encoder = HistoryEncoder(dim)
        self.goal = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, 2))
        self.path = nn.Linear(dim + 2, 2 * horizon)
        self.horizon = horizon
        self.scene = None

    def forward(self, track):
        features = self.encoder(track)
        self.scene = features
        goal = self.goal(self.scene)
        path = self.path(torch.cat([self.scene, goal], dim=-1))
        return goal, path.view(-1, self.horizon, 2)


def loss_fn(goal, path, future):
    return F.smooth_l1_loss(goal, future[:, -1]) + F.smooth_l1_loss(path, future)


def main():
    torch.manual_seed(46)
    model = Predictor()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    track = torch.randn(10, 12, 2).cumsum(1) * 0.2
    for it in range(4):
        goal, path = model(track[:, :8])
        loss = loss_fn(goal, path, track[:, 8:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(it, loss.item())


if __name__ == "__main__":
    main()
