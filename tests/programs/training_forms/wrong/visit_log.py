import torch
from torch import nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence, pack_padded_sequence

torch.manual_seed(50)


def patients(n):
    rows, risk = [], []
    for _ in range(n):
        size = int(torch.randint(3, 40, ()))
        visits = torch.randn(size, 4)
        rows.append(visits)
        risk.append((visits[-1, 0] + visits[-2, 1] > 0).float())
    return rows, torch.stack(risk)


class Intake:
    def __init__(self, n):
        self.rows, self.risk = patients(n)

    def batches(self, size):
        for part in torch.randperm(len(self.rows)).split(size):
            chosen = [self.rows[i] for i in part.tolist()]
            sizes = torch.tensor([len(c) for c in chosen])
            yield pad_sequence(chosen), sizes, self.risk[part]


class RiskNet(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.lstm = nn.LSTM(4, width)
        self.risk = nn.Linear(width, 1)

    def forward(self, visits, sizes):
        _, (final, _) = self.lstm(visits)
        return self.risk(final.squeeze(0)).squeeze(-1)


intake = Intake(256)
net = RiskNet()
opt = torch.optim.AdamW(net.parameters(), lr=0.01)
for epoch in range(8):
    losses = []
    for visits, sizes, risk in intake.batches(32):
        loss = F.binary_cross_entropy_with_logits(net(visits, sizes), risk)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    print(f"epoch {epoch} loss {sum(losses) / len(losses):.4f}")
