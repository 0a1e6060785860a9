"""One trunk, one head per site: vibration features are learned at the first site, the second site gets its own head."""
import torch
import torch.nn as nn
import torch.nn.functional as F

FEATURES = 20
STATES = 5


def make_site(count, prototypes, offset, gain):
    """Machine states seen by sensors with the offset and the gain of a site."""
    labels = torch.randint(STATES, (count,))
    x = prototypes[labels] + 0.8 * torch.randn(count, FEATURES)
    return gain * x + offset, labels


class SiteNet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(FEATURES, width),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.BatchNorm1d(width),
            nn.ReLU(),
        )
        self.heads = nn.ModuleDict()
        self.width = width

    def add_head(self, site):
        self.heads[site] = nn.Sequential(nn.Dropout(0.2), nn.Linear(self.width, STATES))

    def freeze_trunk(self):
        for p in self.trunk.parameters():
            p.requires_grad_(False)
        self.trunk.eval()

    def forward(self, x, site):
        return self.heads[site](self.trunk(x))


def batches(x, y, size):
    order = torch.randperm(len(x))
    for start in range(0, len(x) - size + 1, size):
        rows = order[start:start + size]
        yield x[rows], y[rows]


def run_epoch(model, site, data, optimizer, size=64):
    model.train()
    total, seen = 0.0, 0
    for x, y in batches(*data, size):
        loss = F.cross_entropy(model(x, site), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(x)
        seen += len(x)
    return total / seen


@torch.no_grad()
def accuracy(model, site, data):
    model.eval()
    x, y = data
    return (model(x, site).argmax(1) == y).float().mean().item()


def fit(model, site, data, epochs, lr):
    trainable = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(trainable, lr=lr)
    for epoch in range(1, epochs + 1):
        loss = run_epoch(model, site, data, optimizer)
        if epoch % 4 == 0:
            print(f"{site} epoch {epoch:2d}  loss {loss:.4f}")


def main():
    torch.manual_seed(17)
    prototypes = torch.randn(STATES, FEATURES)
    offset = 2.0 * torch.randn(FEATURES)
    north = dict(offset=torch.zeros(FEATURES), gain=torch.ones(FEATURES))
    south = dict(offset=offset, gain=0.5 + torch.rand(FEATURES))
    north_train = make_site(1280, prototypes, **north)
    north_test = make_site(600, prototypes, **north)
    south_train = make_site(640, prototypes, **south)
    south_test = make_site(600, prototypes, **south)

    model = SiteNet()
    model.add_head("north")
    fit(model, "north", north_train, epochs=8, lr=3e-3)
    first = accuracy(model, "north", north_test)
    print(f"north accuracy {first:.3f}")

    model.freeze_trunk()
    for p in model.heads["north"].parameters():
        p.requires_grad_(False)
    model.add_head("south")
    fit(model, "south", south_train, epochs=12, lr=1e-2)
    final = {"north": accuracy(model, "north", north_test), "south": accuracy(model, "south", south_test)}
    print("  ".join(f"{site} accuracy {value:.3f}" for site, value in final.items()))


if __name__ == "__main__":
    main()
