"""Self-supervised node embeddings without negatives (bootstrapped graph latents), then a linear probe on them."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(29)
NODES, CLASSES, FEATURES, STEPS = 400, 4, 32, 200


def make_city():
    """Stochastic block model of districts; the features of a node are weak and noisy."""
    district = torch.arange(NODES) % CLASSES
    same = district[:, None] == district[None]
    edge = (torch.rand(NODES, NODES) < torch.where(same, 0.07, 0.01)).triu(1)
    centers = torch.randn(CLASSES, FEATURES)
    features = 0.45 * centers[district] + torch.randn(NODES, FEATURES)
    return (edge | edge.T).float(), features, district


def normalize(adj):
    adj = adj + torch.eye(len(adj))
    scale = adj.sum(1).rsqrt()
    return scale[:, None] * adj * scale[None]


def augment(adj, features, drop_edge, drop_feature):
    keep = (torch.rand_like(adj) > drop_edge).float().triu(1)
    columns = (torch.rand(features.shape[1]) > drop_feature).float()
    return normalize(adj * (keep + keep.T)), features * columns


class Encoder(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.first = nn.Linear(FEATURES, dim)
        self.norm = nn.BatchNorm1d(dim)
        self.second = nn.Linear(dim, dim)

    def forward(self, adj, x):
        x = F.relu(self.norm(adj @ self.first(x)))
        return adj @ self.second(x)


class Bootstrap(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.online = Encoder(dim)
        self.target = copy.deepcopy(self.online)
        self.target.requires_grad_(False)
        self.predictor = nn.Sequential(nn.Linear(dim, 96), nn.PReLU(), nn.Linear(96, dim))
        self.reset_target()

    def reset_target(self):
        """The target starts from its own random weights, as in the paper."""
        for layer in (self.target.first, self.target.second):
            layer.reset_parameters()

    @torch.no_grad()
    def move_target(self, momentum):
        for slow, fast in zip(self.target.parameters(), self.online.parameters()):
            slow.mul_(momentum).add_(fast, alpha=1 - momentum)

    def loss(self, one, two):
        prediction = [self.predictor(self.online(*view)) for view in (one, two)]
        with torch.no_grad():
            goal = [self.target(*view) for view in (two, one)]
        return sum(2 - 2 * F.cosine_similarity(p, g).mean() for p, g in zip(prediction, goal))


def probe(embedding, label, train):
    """Accuracy of a linear classifier on the finished embedding."""
    mean, std = embedding[train].mean(0), embedding[train].std(0) + 1e-6
    embedding = (embedding - mean) / std
    layer = nn.Linear(embedding.shape[1], CLASSES)
    optimizer = torch.optim.LBFGS(layer.parameters(), max_iter=40)

    def closure():
        optimizer.zero_grad()
        loss = F.cross_entropy(layer(embedding[train]), label[train]) + 1e-2 * layer.weight.square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    return (layer(embedding[~train]).argmax(-1) == label[~train]).float().mean().item()


adj, features, district = make_city()
full = normalize(adj)
train = torch.rand(NODES) < 0.1
model = Bootstrap()
optimizer = torch.optim.AdamW([*model.online.parameters(), *model.predictor.parameters()], lr=2e-3, weight_decay=1e-5)
print(f"probe on raw features: {probe(features, district, train):.3f}")
for step in range(STEPS + 1):
    if step % 50 == 0:
        model.eval()
        with torch.no_grad():
            embedding = model.online(full, features)
        model.train()
        spread = F.normalize(embedding, dim=1).std(0).mean().item() * math.sqrt(embedding.shape[1])
        print(f"step {step:3d}  probe accuracy {probe(embedding, district, train):.3f}  spread {spread:.3f}")
    one, two = augment(adj, features, 0.3, 0.2), augment(adj, features, 0.4, 0.3)
    loss = model.loss(one, two)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    model.move_target(1 - 0.02 * (math.cos(math.pi * step / STEPS) + 1) / 2)
print(f"bootstrap loss {loss.item():.3f}")
