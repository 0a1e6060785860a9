"""Discharge routing on a river network: a learned runoff model per reach, accumulated level by level down the tree."""
import argparse
import random

import torch
import torch.nn as nn
import torch.nn.functional as F


class RiverTree:
    """Random drainage tree. Confluences are binary: every reach has at most a left and a right tributary."""

    def __init__(self, reaches, seed):
        rng = random.Random(seed)
        self.left = [-1] * reaches
        self.right = [-1] * reaches
        self.depth = [0] * reaches
        for v in range(1, reaches):
            while True:
                u = rng.randrange(max(0, v - 12), v)
                slots = [s for s in (self.left, self.right) if s[u] < 0]
                if slots:
                    rng.choice(slots)[u] = v
                    self.depth[v] = self.depth[u] + 1
                    break
        self.levels = []  # from the headwaters down to the outlet
        for d in range(max(self.depth), 0, -1):
            level = []
            for slot in (self.left, self.right):
                pairs = [(slot[u], u) for u in range(reaches) if slot[u] >= 0 and self.depth[slot[u]] == d]
                if pairs:
                    level.append(torch.tensor(pairs).T)
            self.levels.append(level)


class ReachModel(nn.Module):
    """Local inflow from land cover and rain; a fraction of the upstream flow is lost on the way."""

    def __init__(self, features, width=24):
        super().__init__()
        self.runoff = nn.Sequential(nn.Linear(features + 1, width), nn.SiLU(), nn.Linear(width, 1))
        self.loss = nn.Sequential(nn.Linear(features, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, land, rain, tree):
        """land [reach, features], rain [day, reach] -> discharge [reach, day]"""
        days, reaches = rain.shape
        joint = torch.cat([land.expand(days, -1, -1), rain.unsqueeze(-1)], dim=-1)
        flow = F.softplus(self.runoff(joint)).squeeze(-1).T.clone()
        keep = torch.sigmoid(self.loss(land) + 2.0)
        for level in tree.levels:
            for child, parent in level:
                flow[parent] += keep[child] * flow[child]
        return flow


def nature(land, rain, tree):
    flow = (rain * torch.sigmoid(1.5 * land[:, 0]) + 0.1).T.contiguous()
    keep = torch.sigmoid(2.0 + land[:, 1:2] - 0.5 * land[:, 2:3])
    for level in tree.levels:
        for child, parent in level:
            flow.index_add_(0, parent, keep[child] * flow[child])
    return flow


def nash_sutcliffe(sim, obs):
    return 1 - (sim - obs).pow(2).sum() / (obs - obs.mean(dim=1, keepdim=True)).pow(2).sum()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--reaches", type=int, default=60)
    ap.add_argument("--epochs", type=int, default=40)
    args, _ = ap.parse_known_args()
    torch.manual_seed(6)
    tree = RiverTree(args.reaches, seed=6)
    land = torch.randn(args.reaches, 4)
    rain = 2 * torch.rand(300, 1).pow(3) + 0.5 * torch.rand(300, args.reaches)
    observed = nature(land, rain, tree) * (1 + 0.03 * torch.randn(args.reaches, 300))
    gauges = torch.randperm(args.reaches)[:24]  # the other reaches are ungauged
    ungauged = torch.tensor(sorted(set(range(args.reaches)) - set(gauges.tolist())))

    model = ReachModel(land.shape[1])
    opt = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=1e-3)
    scale = observed[gauges].mean(dim=1, keepdim=True)
    for epoch in range(args.epochs):
        for days in torch.randperm(240).split(40):
            flow = model(land, rain[days], tree)
            loss = F.smooth_l1_loss(flow[gauges] / scale, observed[gauges][:, days] / scale)
            opt.zero_grad()
            loss.backward()
            opt.step()
        if epoch % 8 == 7:
            with torch.no_grad():
                later = model(land, rain[240:], tree)
            score = [nash_sutcliffe(later[r], observed[r, 240:]).item() for r in (gauges, ungauged)]
            print(f"epoch {epoch + 1:2d}  loss {loss.item():.5f}  NSE gauged {score[0]:.3f}  ungauged {score[1]:.3f}")
    return model, score


if __name__ == "__main__":
    main()
