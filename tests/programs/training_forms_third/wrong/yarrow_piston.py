import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

torch.manual_seed(89)


def collate(visits):
    lengths = [len(v) for v in visits]
    batch = pad_sequence(visits, batch_first=True)
    blank = torch.zeros(batch.shape[:2])
    for row, n in enumerate(lengths):
        blank[row, n:] = 1
    return batch, blank


class VisitModel(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.enter = nn.Linear(6, width)
        self.seed = nn.Parameter(torch.randn(1, 1, width) * 0.2)
        self.look = nn.MultiheadAttention(width, 2, batch_first=True)
        self.risk = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, batch, blank):
        h = torch.relu(self.enter(batch))
        seed = self.seed.expand(len(batch), -1, -1)
        pooled, _ = self.look(seed, h, h, key_padding_mask=blank, need_weights=False)
        return self.risk(pooled.squeeze(1)).squeeze(-1)


def admissions(n):
    visits = [torch.randn(int(k), 6) + 0.4 * torch.randn(6) for k in torch.randint(2, 16, (n,))]
    score = torch.stack([v[:, :3].mean() - v[:, 3:].abs().mean() + 0.8 for v in visits])
    return collate(visits), score


model = VisitModel()
opt = torch.optim.RMSprop(model.parameters(), lr=2e-3)
past = []
for it in range(120):
    (batch, blank), score = admissions(32)
    loss = nn.functional.mse_loss(model(batch, blank), score)
    opt.zero_grad()
    loss.backward()
    opt.step()
    past.append(loss.item())
    if it % 40 == 39:
        print(f"{it + 1} {sum(past[-40:]) / 40:.4f}")
