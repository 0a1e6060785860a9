"""Fault classes of pumps at two sites, with one trunk and a head for each site.

The trunk and the first head are trained on site A.  The second site has sensors of other gains, so it gets its own head
on the same, frozen trunk; the classifier of site A stays in service.
"""
import torch
import torch.nn.functional as F
from torch import nn

FEATURES = 16
CLASSES = {"a": 5, "b": 4}
BATCH = 64
STEPS = 100


class Site:
    """Readings of a site: class means in a common space, seen through the gains and offsets of its sensors."""

    def __init__(self, classes, gain, offset):
        self.means = 1.2 * torch.randn(classes, FEATURES)
        self.gain = gain
        self.offset = offset

    def readings(self, count):
        label = torch.randint(0, len(self.means), (count,))
        x = self.means[label] + 0.8 * torch.randn(count, FEATURES)
        return self.gain * x + self.offset, label


class PumpNet(nn.Module):
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

    def add_head(self, name, classes):
        self.heads[name] = nn.Sequential(nn.Dropout(0.2), nn.Linear(self.width, classes))

    def forward(self, x, name):
        return self.heads[name](self.trunk(x))


def fit(model, name, site, parameters, steps):
    optimizer = torch.optim.AdamW(parameters, lr=5e-3, weight_decay=1e-3)
    model.train()
    for step in range(steps):
        x, label = site.readings(BATCH)
        loss = F.cross_entropy(model(x, name), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (step + 1) % 25 == 0:
            print(f"site {name}  step {step + 1:3d}  loss {loss.item():.4f}")


@torch.no_grad()
def accuracy(model, name, x, label):
    model.eval()
    return (model(x, name).argmax(dim=1) == label).float().mean().item()


torch.manual_seed(21)
site_a = Site(CLASSES["a"], gain=torch.ones(FEATURES), offset=torch.zeros(FEATURES))
site_b = Site(CLASSES["b"], gain=0.5 + 1.5 * torch.rand(FEATURES), offset=2.0 * torch.randn(FEATURES))
test_a = site_a.readings(1000)
test_b = site_b.readings(1000)

model = PumpNet()
model.add_head("a", CLASSES["a"])
fit(model, "a", site_a, model.parameters(), STEPS)
a_alone = accuracy(model, "a", *test_a)
print(f"site a: accuracy {a_alone:.3f}")

# The second head, on the trunk of the first site.
for parameter in model.parameters():
    parameter.requires_grad_(False)
model.add_head("b", CLASSES["b"])
trainable = [p for p in model.parameters() if p.requires_grad]
print(f"trainable: {sum(p.numel() for p in trainable)} of {sum(p.numel() for p in model.parameters())} parameters")

fit(model, "b", site_b, trainable, STEPS)
b_final = accuracy(model, "b", *test_b)
a_final = accuracy(model, "a", *test_a)
print(f"site b: accuracy {b_final:.3f}")
print(f"in service: a {a_final:.3f}, b {b_final:.3f}")
