"""BYOL on synthetic sensor windows: an online network predicts the projections of a slowly moving target network."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

KINDS, CHANNELS = 12, 40


def make_windows(n, generator):
    fixed = torch.Generator().manual_seed(77)
    motifs = torch.randn(KINDS, CHANNELS, generator=fixed)
    gain = torch.exp(0.8 * torch.randn(CHANNELS, generator=fixed))
    offset = 3.0 * torch.randn(CHANNELS, generator=fixed)
    kind = torch.randint(0, KINDS, (n,), generator=generator)
    x = motifs[kind] + 0.7 * torch.randn(n, CHANNELS, generator=generator)
    return gain * x + offset, kind


def augment(x, scale):
    """Channel dropout towards the channel mean and additive noise in units of the channel's spread."""
    keep = (torch.rand_like(x) > 0.25).float()
    return x * keep + x.mean(0) * (1 - keep) + 0.4 * scale * torch.randn_like(x)


def mlp(inputs, hidden, outputs):
    return nn.Sequential(nn.Linear(inputs, hidden, bias=False), nn.BatchNorm1d(hidden), nn.ReLU(),
                         nn.Linear(hidden, outputs))


class Network(nn.Module):
    def __init__(self, width=48, projection=24):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(CHANNELS, 64, bias=False), nn.BatchNorm1d(64), nn.ReLU(),
            nn.Linear(64, width, bias=False), nn.BatchNorm1d(width), nn.ReLU())
        self.projector = mlp(width, 64, projection)

    def forward(self, x):
        return self.projector(self.encoder(x))


class BYOL(nn.Module):
    def __init__(self, momentum=0.97):
        super().__init__()
        self.online = Network()
        self.predictor = mlp(24, 48, 24)
        self.target = copy.deepcopy(self.online)
        self.target.requires_grad_(False)
        self.momentum = momentum

    def train(self, mode=True):
        super().train(mode)
        self.target.eval()
        return self

    @torch.no_grad()
    def move_target(self):
        for slow, fast in zip(self.target.parameters(), self.online.parameters()):
            slow.lerp_(fast, 1 - self.momentum)

    def regression(self, view_a, view_b):
        prediction = F.normalize(self.predictor(self.online(view_a)), dim=1)
        with torch.no_grad():
            goal = F.normalize(self.target(view_b), dim=1)
        return 2 - 2 * (prediction * goal).sum(dim=1).mean()

    def forward(self, view_a, view_b):
        return self.regression(view_a, view_b) + self.regression(view_b, view_a)


@torch.no_grad()
def knn_accuracy(encoder, bank, bank_kind, query, query_kind, k=5):
    was_training = encoder.training
    encoder.eval()
    keys, queries = F.normalize(encoder(bank), dim=1), F.normalize(encoder(query), dim=1)
    votes = bank_kind[(queries @ keys.T).topk(k, dim=1).indices]
    encoder.train(was_training)
    return (votes.mode(dim=1).values == query_kind).float().mean().item()


def main():
    torch.manual_seed(9)
    x, kind = make_windows(1200, torch.Generator().manual_seed(1))
    x_test, kind_test = make_windows(400, torch.Generator().manual_seed(2))
    scale = x.std(0)
    model = BYOL().train()
    trained = [*model.online.parameters(), *model.predictor.parameters()]
    optimizer = torch.optim.SGD(trained, lr=0.05, momentum=0.9, weight_decay=1e-4)
    for step in range(200):
        batch = x[torch.randint(0, len(x), (128,))]
        loss = model(augment(batch, scale), augment(batch, scale))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        model.move_target()
        if step % 50 == 0 or step == 199:
            score = knn_accuracy(model.target.encoder, x, kind, x_test, kind_test)
            print(f"step {step:3d}  loss {loss.item():.4f}  kNN of target encoder {score:.3f}")
    print(f"kNN of online encoder {knn_accuracy(model.online.encoder, x, kind, x_test, kind_test):.3f}")
    return model


if __name__ == "__main__":
    model = main()
