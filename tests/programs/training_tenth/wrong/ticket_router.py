"""Support-ticket router: published word vectors stay as they are, vectors for in-house product names are learned."""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

SEED = 31
PUBLIC = 300
PRODUCT = 40
PAD = PUBLIC + PRODUCT
QUEUES = 6
DIM = 24
LENGTH = 14
EPOCHS = 15
BATCH = 64


def make_vectors():
    """Word vectors with a topical direction for each queue, as a published table would have."""
    rng = np.random.default_rng(SEED)
    topic = rng.standard_normal((QUEUES, DIM))
    vectors = topic[rng.permutation(PUBLIC) % QUEUES] + 1.2 * rng.standard_normal((PUBLIC, DIM))
    return torch.tensor(vectors / DIM ** 0.5, dtype=torch.float32), topic


def make_tickets(vectors, topic, n=2400):
    rng = np.random.default_rng(SEED + 1)
    affinity = vectors.numpy() @ topic.T
    chance = np.exp(0.35 * affinity).T
    chance /= chance.sum(1, keepdims=True)
    queue = rng.integers(0, QUEUES, n)
    words = np.stack([rng.choice(PUBLIC, LENGTH, p=chance[q]) for q in queue])
    product = PUBLIC + (queue * 7 + rng.integers(0, 12, n)) % PRODUCT
    words[:, 0] = np.where(rng.random(n) < 0.7, product, words[:, 0])
    length = rng.integers(4, LENGTH + 1, n)
    words[np.arange(LENGTH)[None] >= length[:, None]] = PAD
    return torch.from_numpy(words), torch.from_numpy(queue)


class TicketRouter(nn.Module):
    def __init__(self, vectors):
        super().__init__()
        self.embed = nn.Embedding(PAD + 1, DIM, padding_idx=PAD)
        with torch.no_grad():
            self.embed.weight[:PUBLIC] = vectors
            self.embed.weight[PUBLIC:PAD] = vectors.mean(0)
        keep = torch.zeros(PAD + 1, 1)
        keep[PUBLIC:PAD] = 1
        self.register_buffer("trainable_rows", keep)
        self.embed.weight.register_hook(lambda grad: grad * self.trainable_rows)
        self.gate = nn.Linear(DIM, 1)
        self.classify = nn.Sequential(nn.Linear(DIM, 48), nn.GELU(), nn.Dropout(0.1), nn.Linear(48, QUEUES))

    def forward(self, words):
        x = self.embed(words)
        score = self.gate(x).squeeze(2).masked_fill(words == PAD, -1e9)
        return self.classify((score.softmax(1)[..., None] * x).sum(1))


@torch.no_grad()
def evaluate(model, words, queue):
    model.eval()
    logits = model(words)
    model.train()
    return F.cross_entropy(logits, queue).item(), (logits.argmax(1) == queue).float().mean().item()


def main():
    torch.manual_seed(SEED)
    vectors, topic = make_vectors()
    words, queue = make_tickets(vectors, topic)
    train, test = slice(0, 1800), slice(1800, None)
    model = TicketRouter(vectors)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.1)
    for epoch in range(EPOCHS):
        total = 0.0
        for index in torch.randperm(1800).split(BATCH):
            loss = F.cross_entropy(model(words[train][index]), queue[train][index], label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item() * len(index) / 1800
        if (epoch + 1) % 5 == 0:
            test_loss, accuracy = evaluate(model, words[test], queue[test])
            print(f"epoch {epoch + 1}: loss {total:.3f} test loss {test_loss:.3f} accuracy {accuracy:.3f}")
    return model, vectors


if __name__ == "__main__":
    model, vectors = main()
