"""Slot attention with learned queries (BO-QSA, Jia et al. 2023) that finds the clusters of a set of points in the plane."""
import torch
import torch.nn as nn
import torch.nn.functional as F

CLUSTERS = 3
PER_CLUSTER = 10
WIDTH = 24
ROUNDS = 3
SPREAD = 0.15
STEPS = 80


def make_sets(count, generator):
    """Sets of points around three centres, in random order, and the cluster of each point."""
    corners = torch.tensor([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0], [0.0, 0.0]])
    choice = torch.rand(count, len(corners), generator=generator).argsort(1)[:, :CLUSTERS]
    centres = corners[choice] + 0.15 * torch.randn(count, CLUSTERS, 2, generator=generator)
    member = torch.arange(CLUSTERS).repeat_interleave(PER_CLUSTER)
    order = torch.rand(count, len(member), generator=generator).argsort(1)
    points = centres[:, member] + SPREAD * torch.randn(count, len(member), 2, generator=generator)
    return points.gather(1, order[..., None].expand(-1, -1, 2)), member[order]


class SlotAttention(nn.Module):
    def __init__(self, slots, width):
        super().__init__()
        self.queries = nn.Parameter(torch.randn(1, slots, width) * 0.5)
        self.norm_inputs = nn.LayerNorm(width)
        self.norm_slots = nn.LayerNorm(width, bias=False)
        self.norm_update = nn.LayerNorm(width)
        self.to_query = nn.Linear(width, width, bias=False)
        self.to_key = nn.Linear(width, width, bias=False)
        self.to_value = nn.Linear(width, width, bias=False)
        self.cell = nn.GRUCell(width, width)
        self.update = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))

    def attend(self, slots, keys, values):
        logits = keys @ self.to_query(self.norm_slots(slots)).transpose(1, 2) * keys.shape[-1] ** -0.5
        share = logits.softmax(-1)
        weights = share / (share.sum(1, keepdim=True) + 1e-8)
        gathered = weights.transpose(1, 2) @ values
        new = self.cell(gathered.flatten(0, 1), slots.flatten(0, 1)).view_as(slots)
        return new + self.update(self.norm_update(new))

    def forward(self, inputs):
        inputs = self.norm_inputs(inputs)
        keys, values = self.to_key(inputs), self.to_value(inputs)
        queries = self.queries.expand(len(inputs), -1, -1)
        slots = queries
        with torch.no_grad():
            for _ in range(ROUNDS - 1):
                slots = self.attend(slots, keys, values)
        slots = slots.detach() + queries - queries.detach()
        return self.attend(slots, keys, values)


class ClusterFinder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(2, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))
        self.slots = SlotAttention(CLUSTERS, WIDTH)
        self.to_centre = nn.Linear(WIDTH, 2)

    def forward(self, points):
        return self.to_centre(self.slots(self.embed(points)))


def mixture_loss(centres, points, spread):
    """Negative log-likelihood of the points (up to a constant) under equal Gaussians at the centres."""
    squared = (points[:, :, None] - centres[:, None]).pow(2).sum(-1)
    return -torch.logsumexp(-squared / (2 * spread ** 2), dim=-1).mean()


@torch.no_grad()
def purity(net, points, member):
    """Share of points that are of the most frequent cluster among those nearest to the same centre."""
    nearest = torch.cdist(points, net(points)).argmin(-1)
    table = torch.einsum("bnk,bnc->bkc", F.one_hot(nearest, CLUSTERS).float(), F.one_hot(member, CLUSTERS).float())
    return (table.amax(-1).sum() / member.numel()).item()


def main():
    torch.manual_seed(9)
    generator = torch.Generator().manual_seed(50)
    net = ClusterFinder()
    optimizer = torch.optim.Adam(net.parameters(), lr=4e-3)
    held_out = make_sets(200, generator)
    for step in range(STEPS):
        points, _ = make_sets(32, generator)
        spread = max(0.3, 0.8 - step / STEPS)
        loss = mixture_loss(net(points), points, spread)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 19:
            print(f"step {step + 1:4d}  loss {loss.item():.3f}  purity {purity(net, *held_out):.3f}")
    return net, held_out, purity(net, *held_out)


if __name__ == "__main__":
    net, held_out, result = main()
