import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(92)
MOST, WIDTH = 14, 16


class JetNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = nn.Sequential(nn.Linear(3, WIDTH), nn.ReLU())
        self.seed = nn.Parameter(torch.randn(1, 1, WIDTH))
        self.pool = nn.MultiheadAttention(WIDTH, 2, batch_first=True)
        self.leave = nn.Linear(WIDTH, 1)

    def forward(self, parts, spare):
        h = self.enter(parts)
        q = self.seed.expand(len(parts), -1, -1)
        pooled, _ = self.pool(q, h, h, key_padding_mask=spare, need_weights=False)
        return self.leave(pooled[:, 0]).squeeze(-1)


def collate(jets):
    parts = torch.zeros(len(jets), MOST, 3)
    spare = torch.ones(len(jets), MOST)
    for i, (jet, _) in enumerate(jets):
        parts[i, : len(jet)] = jet
        spare[i, : len(jet)] = 0
    return parts, spare, torch.tensor([tag for _, tag in jets])


def simulate(n):
    jets = []
    for _ in range(n):
        tag = float(torch.rand(()) < 0.5)
        count = int(torch.randint(3, MOST + 1, ()))
        jet = torch.randn(count, 3) * (0.8 + 0.5 * tag) + torch.tensor([0.2 * tag, 0.0, 1.0])
        jets.append((jet, tag))
    return jets


jets = simulate(450)
train, test = jets[:330], jets[330:]
net = JetNet()
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for epoch in range(6):
    order = torch.randperm(len(train)).tolist()
    losses = []
    for start in range(0, len(order), 50):
        *inputs, tag = collate([train[k] for k in order[start : start + 50]])
        loss = F.binary_cross_entropy_with_logits(net(*inputs), tag)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    print(f"epoch {epoch}: loss {sum(losses) / len(losses):.4f}")

with torch.no_grad():
    *inputs, tag = collate(test)
    hit = ((net(*inputs) > 0) == (tag > 0.5)).float().mean()
print(f"test accuracy {hit:.3f}")
