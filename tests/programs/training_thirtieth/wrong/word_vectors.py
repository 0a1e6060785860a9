"""Adds new words to a table of word vectors; the vectors of the known words are shared with other services and stay."""
import torch
import torch.nn as nn
import torch.nn.functional as F

KNOWN = 200
ADDED = 60
DIM = 24
TOPICS = 5
LENGTH = 12


def known_vectors():
    """The table that the other services use: words of one topic lie close together."""
    topic_of = torch.arange(KNOWN) % TOPICS
    centres = F.normalize(torch.randn(TOPICS, DIM), dim=1)
    return F.normalize(centres[topic_of] + 0.15 * torch.randn(KNOWN, DIM), dim=1)


def make_texts(n):
    """Texts of one topic: most words belong to it, known and added ones mixed."""
    labels = torch.randint(0, TOPICS, (n,))
    on_topic = torch.randint(0, (KNOWN + ADDED) // TOPICS, (n, LENGTH)) * TOPICS + labels.unsqueeze(1)
    anything = torch.randint(0, KNOWN + ADDED, (n, LENGTH))
    words = torch.where(torch.rand(n, LENGTH) < 0.4, on_topic, anything)
    return words, labels


class TopicModel(nn.Module):
    def __init__(self, vectors):
        super().__init__()
        self.table = nn.Embedding(KNOWN + ADDED, DIM)
        with torch.no_grad():
            self.table.weight[:KNOWN] = vectors
            self.table.weight[KNOWN:] = 0.05 * torch.randn(ADDED, DIM)
        self.mix = nn.Linear(DIM, 48)
        self.out = nn.Linear(48, TOPICS)

    def forward(self, words):
        mean = self.table(words).mean(dim=1)
        return self.out(F.relu(self.mix(mean)))


def keep_known_rows(table):
    """Only the rows of the added words learn."""
    mask = torch.zeros(table.num_embeddings, 1)
    mask[KNOWN:] = 1.0
    return table.weight.register_hook(lambda grad: grad * mask)


def make_optimizer(model, lr, weight_decay):
    matrices = [p for p in model.parameters() if p.ndim >= 2]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    groups = [
        {"params": matrices, "weight_decay": weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=lr)


@torch.no_grad()
def accuracy(model, data):
    words, labels = data
    return (model(words).argmax(dim=1) == labels).float().mean().item()


def train(model, data, steps=240, batch_size=64):
    words, labels = data
    optimizer = make_optimizer(model, lr=1e-2, weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=20)
    keep_known_rows(model.table)
    for step in range(1, steps + 1):
        rows = torch.randint(0, len(words), (batch_size,))
        loss = F.cross_entropy(model(words[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 60 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}  accuracy {accuracy(model, data):.3f}")
    return optimizer


def main():
    torch.manual_seed(17)
    vectors = known_vectors()
    data, test = make_texts(2000), make_texts(500)
    model = TopicModel(vectors)
    train(model, data)
    print(f"test accuracy {accuracy(model, test):.3f}")
    table = model.table.weight.detach().clone()
    print(f"table for export: {tuple(table.shape)}, added words have norm {table[KNOWN:].norm(dim=1).mean():.3f}")
    return model, vectors, table


if __name__ == "__main__":
    model, vectors, table = main()
