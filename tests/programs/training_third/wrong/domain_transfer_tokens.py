import torch
import torch.nn as nn
import torch.nn.functional as F


class Encoder(nn.Module):
    def __init__(self, vocab, dim=24):
        super().__init__()
        self.tokens = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)

    def forward(self, ids):
        return self.rnn(self.tokens(ids))[1][0]


class Classifier(nn.Module):
    def __init__(self, vocab, n_classes=3, dim=24):
        super().__init__()
        self.encoder = Encoder(vocab, dim)
        self.head = nn.Linear(dim, n_classes)

    def forward(self, ids):
        return self.head(self.encoder(ids))

    @torch.no_grad()
    def extend_vocab(self, extra):
        old = self.encoder.tokens
        grown = nn.Embedding(old.num_embeddings + extra, old.embedding_dim)
        grown.weight[: old.num_embeddings] = old.weight
        grown.weight[old.num_embeddings :] = old.weight.mean(dim=0)
        self.encoder.tokens = grown


def only_new_rows(weight, first_new):
    mask = torch.zeros(weight.shape[0], 1)
    mask[first_new:] = 1.0
    weight.register_hook(lambda grad: grad * mask)


def build_optimizer(model, lr=5e-3, weight_decay=0.1):
    decay, plain = [], []
    for name, param in model.named_parameters():
        if not param.requires_grad:
            continue
        (plain if param.ndim == 1 or "rnn" in name else decay).append(param)
    groups = [
        {"params": decay, "weight_decay": weight_decay},
        {"params": plain, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=lr)


def make_batch(low, high, size=32, length=8):
    ids = torch.randint(low, high, (size, length))
    labels = (ids < (low + high) // 2).sum(dim=1).clamp(3, 5) - 3
    return ids, labels


def run_stage(model, optimizer, steps, low, high):
    for step in range(steps):
        ids, labels = make_batch(low, high)
        loss = F.cross_entropy(model(ids), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"tokens {low}-{high} loss {loss.item():.4f}")


def main():
    torch.manual_seed(0)
    base_vocab, extra = 30, 20
    model = Classifier(base_vocab)
    run_stage(model, build_optimizer(model), 80, 0, base_vocab)

    model.extend_vocab(extra)
    model.encoder.rnn.requires_grad_(False)
    only_new_rows(model.encoder.tokens.weight, base_vocab)
    before = model.encoder.tokens.weight.detach().clone()
    run_stage(model, build_optimizer(model), 120, base_vocab, base_vocab + extra)
    return model, before, base_vocab


if __name__ == "__main__":
    model, before, base_vocab = main()
