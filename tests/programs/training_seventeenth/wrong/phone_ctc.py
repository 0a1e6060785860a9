"""Phone recognition on synthetic filterbank features with a small CNN-GRU and CTC."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

N_PHONES = 8
N_MELS = 20
BLANK = 0


def make_corpus(n, rng, prototypes):
    utts = []
    for _ in range(n):
        k = rng.integers(3, 7)
        phones = rng.integers(1, N_PHONES + 1, size=k)
        frames = []
        for p in phones:
            dur = rng.integers(5, 10)
            frames.append(prototypes[p - 1] + 0.5 * rng.standard_normal((dur, N_MELS)))
            frames.append(0.5 * rng.standard_normal((2, N_MELS)))
        feats = np.concatenate(frames).astype(np.float32)
        utts.append((torch.from_numpy(feats), torch.from_numpy(phones)))
    return utts


def collate(utts):
    feat_lens = torch.tensor([len(f) for f, _ in utts])
    label_lens = torch.tensor([len(p) for _, p in utts])
    feats = nn.utils.rnn.pad_sequence([f for f, _ in utts], batch_first=True)
    labels = torch.cat([p for _, p in utts])
    return feats, feat_lens, labels, label_lens


class PhoneNet(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.conv = nn.Conv1d(N_MELS, hidden, 3, stride=2, padding=1)
        self.gru = nn.GRU(hidden, hidden, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, N_PHONES + 1)

    def forward(self, feats, feat_lens):
        x = F.relu(self.conv(feats.transpose(1, 2))).transpose(1, 2)
        lens = (feat_lens + 1) // 2
        packed = nn.utils.rnn.pack_padded_sequence(x, lens, batch_first=True, enforce_sorted=False)
        x, _ = nn.utils.rnn.pad_packed_sequence(self.gru(packed)[0], batch_first=True)
        return self.out(x), lens


def ctc_objective(logits, lens, labels, label_lens):
    batch, frames, classes = logits.shape
    # nn.CTCLoss wants (time, batch, classes)
    log_probs = F.log_softmax(logits, dim=-1).reshape(frames, batch, classes)
    return F.ctc_loss(log_probs, labels, lens, label_lens, blank=BLANK, zero_infinity=True)


def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        prev, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            prev, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, prev + (x != y))
    return row[-1]


@torch.no_grad()
def phone_error_rate(net, utts):
    net.eval()
    errors = total = 0
    for feats, phones in utts:
        logits, _ = net(feats[None], torch.tensor([len(feats)]))
        best = logits[0].argmax(-1)
        best = torch.unique_consecutive(best)
        hyp = best[best != BLANK].tolist()
        errors += edit_distance(hyp, phones.tolist())
        total += len(phones)
    net.train()
    return errors / total


def main():
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    prototypes = rng.standard_normal((N_PHONES, N_MELS))
    train = make_corpus(160, rng, prototypes)
    dev = make_corpus(40, rng, prototypes)
    net = PhoneNet()
    opt = torch.optim.Adam(net.parameters(), lr=4e-3)
    for epoch in range(8):
        order = rng.permutation(len(train))
        running = 0.0
        for start in range(0, len(order), 16):
            feats, feat_lens, labels, label_lens = collate([train[i] for i in order[start:start + 16]])
            logits, lens = net(feats, feat_lens)
            loss = ctc_objective(logits, lens, labels, label_lens)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 5.0)
            opt.step()
            running += loss.item()
        print(f"epoch {epoch} ctc {running / 10:.3f}")
    per = phone_error_rate(net, dev)
    print(f"dev phone error rate {per:.3f}")
    return per


if __name__ == "__main__":
    final_per = main()
