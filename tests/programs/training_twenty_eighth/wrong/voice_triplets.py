"""Speaker embeddings with a batch-hard triplet loss (Hermans et al., 2017) on synthetic utterance statistics."""
import torch
import torch.nn as nn
import torch.nn.functional as F

SPEAKERS, PER_SPEAKER, DIM = 40, 20, 48


def make_utterances(generator):
    voices = torch.randn(SPEAKERS, 6, generator=generator)
    mix = torch.randn(6, DIM, generator=generator)
    room = torch.randn(12, DIM, generator=generator)
    labels = torch.arange(SPEAKERS).repeat_interleave(PER_SPEAKER)
    acoustic = torch.randn(len(labels), 12, generator=generator) @ room
    x = voices[labels] @ mix + 2.0 * acoustic + 0.3 * torch.randn(len(labels), DIM, generator=generator)
    return x / x.std(), labels


class SpeakerEncoder(nn.Module):
    def __init__(self, hidden=96, out=24):
        super().__init__()
        self.frame = nn.Sequential(nn.Linear(DIM, hidden), nn.LayerNorm(hidden), nn.GELU())
        self.proj = nn.Linear(hidden, out)

    def forward(self, x):
        return F.normalize(self.proj(self.frame(x)), dim=1)


def pairwise_distance(a, b):
    diff = a.unsqueeze(1) - b.unsqueeze(0)
    return diff.pow(2).sum(dim=-1).sqrt()


class BatchHardTriplet(nn.Module):
    def __init__(self, margin=0.3):
        super().__init__()
        self.margin = margin

    def forward(self, emb, labels):
        dist = pairwise_distance(emb, emb)
        same = labels.unsqueeze(0) == labels.unsqueeze(1)
        hardest_pos = dist.masked_fill(~same, float("-inf")).amax(dim=1)
        hardest_neg = dist.masked_fill(same, float("inf")).amin(dim=1)
        return F.relu(hardest_pos - hardest_neg + self.margin).mean()


class PKSampler:
    """P speakers with K utterances each, without replacement of speakers inside an epoch."""

    def __init__(self, labels, p, k):
        self.by_speaker = [torch.nonzero(labels == s).flatten() for s in range(SPEAKERS)]
        self.p, self.k = p, k

    def __iter__(self):
        order = torch.randperm(SPEAKERS).tolist()
        for start in range(0, SPEAKERS - self.p + 1, self.p):
            chosen = order[start : start + self.p]
            yield torch.cat([self.by_speaker[s][torch.randperm(len(self.by_speaker[s]))[: self.k]] for s in chosen])


@torch.no_grad()
def recall_at_1(model, x, labels):
    model.eval()
    emb = model(x)
    sim = emb @ emb.T
    sim.fill_diagonal_(-2.0)
    hit = labels[sim.argmax(dim=1)] == labels
    model.train()
    return hit.float().mean().item()


def fit(model, x, labels, epochs=25):
    criterion = BatchHardTriplet()
    sampler = PKSampler(labels, p=8, k=4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-4)
    for epoch in range(epochs):
        total, batches = 0.0, 0
        for index in sampler:
            loss = criterion(model(x[index]), labels[index])
            optimizer.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            if torch.isfinite(norm):
                optimizer.step()
            total += loss.item()
            batches += 1
        if epoch % 6 == 0:
            print(f"epoch {epoch:2d}  triplet {total / batches:.4f}  recall@1 {recall_at_1(model, x, labels):.3f}")


if __name__ == "__main__":
    torch.manual_seed(11)
    x, labels = make_utterances(torch.Generator().manual_seed(3))
    model = SpeakerEncoder()
    fit(model, x, labels)
    print(f"final recall@1 {recall_at_1(model, x, labels):.3f}")
