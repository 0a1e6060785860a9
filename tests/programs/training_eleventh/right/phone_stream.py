"""Streaming phone recogniser: a GRU over long utterances, trained chunk by chunk with one update per batch."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

N_PHONES, N_BANDS, PAD = 8, 20, -100
BATCH, CHUNK, EPOCHS = 16, 40, 6


def utterance(rng, templates):
    """Phones alternate in pairs, and the second one of a pair can be told apart only with the first in mind."""
    frames, labels = [], []
    for _ in range(rng.integers(6, 14)):
        first = rng.integers(0, 4)
        second = 4 + (first + 1) % 4
        for phone, template in ((first, templates[first]), (second, templates[4 + first % 2])):
            length = rng.integers(4, 9)
            frames.append(template + rng.normal(0, 0.8, size=(length, N_BANDS)))
            labels += [phone] * length
    return torch.tensor(np.concatenate(frames), dtype=torch.float32), torch.tensor(labels)


def collate(items):
    x = nn.utils.rnn.pad_sequence([f for f, _ in items], batch_first=True)
    y = nn.utils.rnn.pad_sequence([l for _, l in items], batch_first=True, padding_value=PAD)
    return x, y


class StreamingRecogniser(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.frontend = nn.Sequential(nn.Linear(N_BANDS, 32), nn.LayerNorm(32), nn.ReLU())
        self.rnn = nn.GRU(64, hidden, batch_first=True)
        self.out = nn.Linear(hidden, N_PHONES)

    def forward(self, x, state=None, last_frame=None):
        if last_frame is None:
            last_frame = x[:, :1]
        delta = x - torch.cat([last_frame, x[:, :-1]], dim=1)
        h = torch.cat([self.frontend(x), self.frontend(delta)], dim=-1)
        h, state = self.rnn(h, state)
        return self.out(h), state, x[:, -1:]


def backward_in_chunks(model, x, y):
    """Truncated back-propagation through time; the gradients of all chunks add up to one mean over frames."""
    n_frames = (y != PAD).sum()
    state, last_frame, total = None, None, 0.0
    for xs, ys in zip(x.split(CHUNK, dim=1), y.split(CHUNK, dim=1)):
        logits, state, last_frame = model(xs, state, last_frame)
        loss = F.cross_entropy(logits.flatten(0, 1), ys.flatten(), ignore_index=PAD, reduction="sum") / n_frames
        loss.backward()
        total += loss.item()
        state = state.detach()
    return total


@torch.no_grad()
def frame_accuracy(model, data):
    model.eval()
    hits = frames = 0
    for start in range(0, len(data), BATCH):
        x, y = collate(data[start:start + BATCH])
        real = y != PAD
        hits += (model(x)[0].argmax(-1) == y)[real].sum().item()
        frames += real.sum().item()
    model.train()
    return hits / frames


def param_groups(model, weight_decay):
    decay = [p for p in model.parameters() if p.dim() > 1]
    plain = [p for p in model.parameters() if p.dim() <= 1]
    return [{"params": decay, "weight_decay": weight_decay}, {"params": plain, "weight_decay": 0.0}]


def main():
    torch.manual_seed(41)
    rng = np.random.default_rng(41)
    templates = rng.normal(0, 1, size=(6, N_BANDS))
    train = [utterance(rng, templates) for _ in range(128)]
    test = [utterance(rng, templates) for _ in range(48)]

    model = StreamingRecogniser()
    optimizer = torch.optim.AdamW(param_groups(model, 1e-2), lr=8e-3)
    steps = EPOCHS * (len(train) // BATCH)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=8e-3, total_steps=steps)
    for epoch in range(EPOCHS):
        epoch_loss = []
        for idx in torch.randperm(len(train)).split(BATCH):
            x, y = collate([train[i] for i in idx.tolist()])
            epoch_loss.append(backward_in_chunks(model, x, y))
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            scheduler.step()
        print(f"epoch {epoch} loss {np.mean(epoch_loss):.4f} test frames {frame_accuracy(model, test):.4f}")


if __name__ == "__main__":
    main()
