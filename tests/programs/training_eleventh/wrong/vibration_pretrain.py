"""Machine vibration: contrastive pretraining on unlabeled windows, then fine-tuning with a handful of labels."""
import io

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(8)

WINDOW = 96
FAULTS = 5
FREQS = torch.tensor([3.0, 5.0, 7.5, 10.0, 13.0])


def make_windows(n):
    y = torch.randint(FAULTS, (n,))
    t = torch.linspace(0, 1, WINDOW)
    phase = 6.28 * torch.rand(n, 2, 1)
    signal = torch.sin(6.28 * FREQS[y].unsqueeze(1) * t + phase[:, 0])
    hum = 1.2 * torch.sin(6.28 * (1 + torch.rand(n, 1)) * t + phase[:, 1])
    return (signal + hum + 0.8 * torch.randn(n, WINDOW)).unsqueeze(1), y


def augment(x):
    shift = int(torch.randint(WINDOW, (1,)))
    gain = 0.7 + 0.6 * torch.rand(len(x), 1, 1)
    return gain * torch.roll(x, shift, dims=2) + 0.4 * torch.randn_like(x)


def make_encoder():
    return nn.Sequential(
        nn.Conv1d(1, 24, 15, padding=7), nn.BatchNorm1d(24), nn.ReLU(),
        nn.Conv1d(24, 32, 9, stride=2, padding=4), nn.BatchNorm1d(32), nn.ReLU(),
        nn.AdaptiveAvgPool1d(1), nn.Flatten(),
    )


class ContrastiveModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = make_encoder()
        self.projector = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 24))

    def forward(self, x):
        return F.normalize(self.projector(self.encoder(x)), dim=1)


class FaultClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = make_encoder()
        self.head = nn.Linear(32, FAULTS)

    def forward(self, x):
        return self.head(self.backbone(x))


def info_nce(a, b, temperature=0.2):
    z = torch.cat([a, b])
    sim = z @ z.T / temperature
    sim = sim.masked_fill(torch.eye(len(z), dtype=torch.bool), float("-inf"))
    n = len(a)
    target = torch.cat([torch.arange(n, 2 * n), torch.arange(n)])
    return F.cross_entropy(sim, target)


unlabeled, _ = make_windows(1024)
few_x, few_y = make_windows(40)
test_x, test_y = make_windows(600)

pretrain = ContrastiveModel()
optimizer = torch.optim.Adam(pretrain.parameters(), lr=3e-3)
for epoch in range(8):
    for batch in unlabeled[torch.randperm(len(unlabeled))].split(64):
        loss = info_nce(pretrain(augment(batch)), pretrain(augment(batch)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 4 == 3:
        print(f"pretraining epoch {epoch + 1}  contrastive loss {loss.item():.3f}")

checkpoint = io.BytesIO()
torch.save({"model": pretrain.state_dict(), "epoch": epoch}, checkpoint)
checkpoint.seek(0)

classifier = FaultClassifier()
# the projector is not needed any more, and the classifier's head is new
classifier.load_state_dict(torch.load(checkpoint)["model"], strict=False)

optimizer = torch.optim.Adam([
    {"params": classifier.backbone.parameters(), "lr": 1e-4},
    {"params": classifier.head.parameters(), "lr": 2e-2},
])
for step in range(40):
    classifier.train()
    loss = F.cross_entropy(classifier(augment(few_x)), few_y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

classifier.eval()
with torch.no_grad():
    test_acc = (classifier(test_x).argmax(1) == test_y).float().mean().item()
print(f"fine-tuned with {len(few_x)} labels: loss {loss.item():.3f}  test accuracy {test_acc:.3f}")
