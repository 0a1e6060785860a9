import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(2)


class VisitPool(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.relevance = nn.Sequential(nn.Linear(dim, 8), nn.Tanh(), nn.Linear(8, 1))

    def forward(self, visits):
        scores = torch.as_tensor([self.relevance(v).item() for v in visits])
        share = F.softmax(scores, dim=0)
        return share @ visits


class Readmission(nn.Module):
    def __init__(self, codes=30, dim=10):
        super().__init__()
        self.codes = nn.EmbeddingBag(codes, dim, mode="sum")
        self.pool = VisitPool(dim)
        self.risk = nn.Linear(dim, 1)

    def forward(self, patients):
        rows = [self.pool(self.codes(p)) for p in patients]
        return self.risk(torch.stack(rows)).flatten()


def make_patient():
    visits = torch.randint(1, 30, (int(torch.randint(2, 7, ())), 4))
    ill = bool(torch.rand(()) < 0.5)
    if ill:
        visits[int(torch.randint(len(visits), ())), 0] = 0
    return visits, float(ill)


cohort = [make_patient() for _ in range(96)]
model = Readmission()
opt = torch.optim.RMSprop(model.parameters(), lr=5e-3)
for epoch in range(6):
    total = 0.0
    for start in range(0, len(cohort), 16):
        patients, ill = zip(*cohort[start:start + 16])
        loss = F.binary_cross_entropy_with_logits(model(patients), torch.tensor(ill))
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    print(f"epoch {epoch}  loss {total / 6:.4f}")
