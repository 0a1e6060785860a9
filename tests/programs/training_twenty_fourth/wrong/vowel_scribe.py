"""Phone recogniser: strided conv front end + BiGRU + CTC on synthetic log-mel frames."""
from dataclasses import dataclass

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence

N_MELS, N_PHONES = 24, 12  # phones are 1..12, 0 is the CTC blank


@dataclass
class Config:
    hidden: int = 48
    strides: tuple = (2, 2)
    lr: float = 3e-3
    epochs: int = 8
    batch_size: int = 32
    n_train: int = 512
    n_test: int = 96
    seed: int = 11


def make_corpus(n, templates, gen):
    """Speakers differ in rate: a phone lasts 2 frames with the fastest and up to 6 with the slowest."""
    corpus = []
    for _ in range(n):
        length = int(torch.randint(5, 10, (1,), generator=gen))
        rate = 2 + 3 * torch.rand(1, generator=gen).item()
        steps = torch.randint(1, N_PHONES, (length,), generator=gen)
        phones = steps.cumsum(0) % N_PHONES + 1  # neighbours always differ
        durations = (rate + 2 * torch.rand(length, generator=gen)).long()
        frames = templates[phones].repeat_interleave(durations, dim=0)
        frames = frames + 0.5 * torch.randn(frames.shape, generator=gen)
        corpus.append((frames, phones))
    return corpus


def collate(items):
    frames, phones = zip(*items)
    n_frames = torch.tensor([len(f) for f in frames])
    n_phones = torch.tensor([len(p) for p in phones])
    return pad_sequence(frames, batch_first=True), n_frames, torch.cat(phones), n_phones


class Recogniser(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.strides = cfg.strides
        width = 40
        self.convs = nn.ModuleList(
            nn.Conv1d(N_MELS if i == 0 else width, width, kernel_size=3, stride=s, padding=1)
            for i, s in enumerate(cfg.strides))
        self.rnn = nn.GRU(width, cfg.hidden, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * cfg.hidden, N_PHONES + 1)

    def forward(self, x, n_frames):
        x = x.transpose(1, 2)
        for conv, stride in zip(self.convs, self.strides):
            x = torch.relu(conv(x))
            n_frames = (n_frames - 1) // stride + 1
            keep = torch.arange(x.shape[-1]) < n_frames[:, None]
            x = x * keep[:, None]
        x, _ = self.rnn(x.transpose(1, 2))
        return self.head(x).log_softmax(-1).transpose(0, 1), n_frames  # (T, B, C) for CTC


def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        prev, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            prev, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, prev + (x != y))
    return row[-1]


@torch.no_grad()
def phone_error_rate(model, corpus):
    model.eval()
    x, n_frames, _, _ = collate(corpus)
    log_probs, n_out = model(x, n_frames)
    errors = total = 0
    for path, n, (_, phones) in zip(log_probs.argmax(-1).T, n_out, corpus):
        hyp = [p for p in torch.unique_consecutive(path[:n]).tolist() if p != 0]
        errors += edit_distance(hyp, phones.tolist())
        total += len(phones)
    return errors / total


if __name__ == "__main__":
    cfg = Config()
    torch.manual_seed(cfg.seed)
    gen = torch.Generator().manual_seed(cfg.seed)
    templates = torch.randn(N_PHONES + 1, N_MELS, generator=gen)
    train, test = make_corpus(cfg.n_train, templates, gen), make_corpus(cfg.n_test, templates, gen)
    model = Recogniser(cfg)
    ctc = nn.CTCLoss(blank=0, zero_infinity=True)
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    for epoch in range(cfg.epochs):
        model.train()
        running = 0.0
        for idx in torch.randperm(cfg.n_train).split(cfg.batch_size):
            x, n_frames, phones, n_phones = collate([train[i] for i in idx])
            log_probs, n_out = model(x, n_frames)
            loss = ctc(log_probs, phones, n_out, n_phones)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            opt.step()
            running += loss.item() * len(idx) / cfg.n_train
        print(f"epoch {epoch} ctc {running:.3f} PER {phone_error_rate(model, test):.3f}")
