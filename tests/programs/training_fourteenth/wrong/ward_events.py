"""Readmission risk from a patient's event codes (bidirectional GRU) plus a few static measurements."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset

SEED = 11
VOCAB = 40
STATIC = 4
torch.manual_seed(SEED)
rng = np.random.default_rng(SEED)


class Admissions(Dataset):
    """Codes 1..39; a late occurrence of a code in 5..8 and an early code in 20..24 raise the risk."""

    def __init__(self, n):
        self.rows = []
        for _ in range(n):
            length = int(rng.integers(5, 16))
            codes = rng.integers(1, VOCAB, size=length)
            if rng.random() < 0.5:
                codes[-int(rng.integers(1, 4))] = rng.integers(5, 9)
            if rng.random() < 0.5:
                codes[int(rng.integers(0, 3))] = rng.integers(20, 25)
            static = rng.normal(size=STATIC)
            late = np.isin(codes[-3:], [5, 6, 7, 8]).any()
            early = np.isin(codes[:3], [20, 21, 22, 23, 24]).any()
            score = 3.0 * late + 3.0 * early - 2.8 + 0.8 * static[0] - 0.6 * static[2]
            label = float(rng.random() < 1 / (1 + np.exp(-2.0 * score)))
            self.rows.append((codes, static, label))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        codes, static, label = self.rows[i]
        return torch.as_tensor(codes), torch.as_tensor(static, dtype=torch.float32), torch.tensor(label)


def collate(items):
    codes, static, labels = zip(*items)
    lengths = torch.tensor([len(c) for c in codes])
    return pad_sequence(codes, batch_first=True), lengths, torch.stack(static), torch.stack(labels)


class RiskNet(nn.Module):
    def __init__(self, dim=24, hidden=32):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim, padding_idx=0)
        self.rnn = nn.GRU(dim, hidden, batch_first=True, bidirectional=True)
        self.static = nn.Sequential(nn.Linear(STATIC, 16), nn.ReLU())
        self.head = nn.Sequential(nn.Linear(2 * hidden + 16, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, codes, lengths, static):
        batch = codes.size(0)
        packed = pack_padded_sequence(self.embed(codes), lengths, batch_first=True, enforce_sorted=False)
        _, h_n = self.rnn(packed)
        # final states of both directions for every patient
        summary = h_n.view(batch, -1)
        return self.head(torch.cat([summary, self.static(static)], dim=1)).squeeze(1)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    loss, hits, n = 0.0, 0, 0
    for codes, lengths, static, labels in loader:
        logits = model(codes, lengths, static)
        loss += F.binary_cross_entropy_with_logits(logits, labels, reduction="sum").item()
        hits += ((logits > 0).float() == labels).sum().item()
        n += len(labels)
    return loss / n, hits / n


def main():
    train, test = Admissions(1600), Admissions(400)
    train_loader = DataLoader(train, batch_size=32, shuffle=True, collate_fn=collate)
    test_loader = DataLoader(test, batch_size=64, collate_fn=collate)
    model = RiskNet()
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-3)
    for epoch in range(6):
        model.train()
        total = 0.0
        for codes, lengths, static, labels in train_loader:
            loss = F.binary_cross_entropy_with_logits(model(codes, lengths, static), labels)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            total += loss.item() * len(labels)
        test_loss, test_acc = evaluate(model, test_loader)
        print(f"epoch {epoch}: train {total / len(train):.4f}  test {test_loss:.4f}  acc {test_acc:.3f}")
    return test_acc


if __name__ == "__main__":
    accuracy = main()
