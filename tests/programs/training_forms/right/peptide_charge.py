from functools import partial
import random
import torch
from torch import nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence

torch.manual_seed(2)
random.seed(2)
RESIDUES = "ACDEFGHIKLMNPQRSTVWY"
PAD = 0
CODE = dict(zip(RESIDUES, range(1, len(RESIDUES) + 1)))
EFFECT = dict(zip(RESIDUES, torch.linspace(-1.5, 1.5, 20).tolist()))


def encode(peptide):
    return torch.tensor([CODE[r] for r in peptide])


class PeptideNet(nn.Module):
    def __init__(self, dim=12):
        super().__init__()
        self.residue = nn.Parameter(torch.randn(len(RESIDUES) + 1, dim) * 0.3)
        self.lookup = partial(F.embedding, padding_idx=PAD)
        self.conv = nn.Conv1d(dim, 24, 3, padding=1)
        self.read = nn.Linear(24, 1)

    def forward(self, ids, real):
        h = self.lookup(ids, self.residue)
        h = torch.tanh(self.conv(h.mT)).mT
        return self.read((h * real.unsqueeze(-1)).sum(1)).squeeze(-1)


def sample(count):
    peptides = ["".join(random.choices(RESIDUES, k=random.randint(6, 14))) for _ in range(count)]
    ids = pad_sequence([encode(p) for p in peptides], batch_first=True, padding_value=PAD)
    sizes = torch.tensor([len(p) for p in peptides])
    real = (torch.arange(ids.shape[1]) < sizes[:, None]).float()
    target = torch.tensor([sum(EFFECT[r] for r in p) for p in peptides])
    return ids, real, target


ids, real, target = sample(400)
net = PeptideNet()
optim = torch.optim.Adamax(net.parameters(), lr=0.01)
for epoch in range(8):
    total = 0.0
    for pick in torch.randperm(len(ids)).split(50):
        loss = F.mse_loss(net(ids[pick], real[pick]), target[pick])
        optim.zero_grad()
        loss.backward()
        optim.step()
        total += loss.item() * len(pick)
    print(f"epoch {epoch} mse {total / len(ids):.4f}")
