import torch
import torch.nn as nn
import torch.nn.functional as F


class CaptionEncoder(nn.Module):
    def __init__(self, vocab=24, dim=16):
        super().__init__()
        self.tokens = nn.Embedding(vocab, dim)
        self.mixer = nn.GRU(dim, dim, batch_first=True)
        self.project = nn.Linear(dim, dim)

    def forward(self, ids):
        return F.normalize(self.project(self.mixer(self.tokens(ids))[1][0]), dim=-1)


class ConceptTuning:
    def __init__(self, encoder, first_new, lr=2e-2):
        self.encoder = encoder.requires_grad_(False)
        weight = encoder.tokens.weight.requires_grad_(True)
        self.keep = torch.zeros(len(weight), 1)
        self.keep[first_new:] = 1
        self.handle = weight.register_hook(self.mask)
        self.optimizer = torch.optim.AdamW([weight], lr=lr, weight_decay=0.0)

    def mask(self, grad):
        return grad * self.keep

    def step(self, ids, target):
        loss = (1 - (self.encoder(ids) * target).sum(dim=-1)).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def close(self):
        self.handle.remove()
        self.encoder.tokens.weight.requires_grad_(False)


def pretrain(encoder, images, steps=60):
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=5e-3)
    for _ in range(steps):
        ids = torch.randint(0, len(images), (32, 5))
        target = F.normalize(images[ids].mean(dim=1), dim=-1)
        loss = (1 - (encoder(ids) * target).sum(dim=-1)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"pretrained {loss.item():.4f}")


def extend(encoder, extra):
    old = encoder.tokens
    grown = nn.Embedding(old.num_embeddings + extra, old.embedding_dim)
    with torch.no_grad():
        grown.weight[: old.num_embeddings].copy_(old.weight)
        grown.weight[old.num_embeddings :].copy_(old.weight[:extra])
    encoder.tokens = grown
    return old.num_embeddings


def main(steps=60):
    torch.manual_seed(0)
    images = torch.randn(24, 16)
    encoder = CaptionEncoder()
    pretrain(encoder, images)
    first_new = extend(encoder, 2)
    before = encoder.tokens.weight.detach().clone()
    tuning = ConceptTuning(encoder, first_new)
    subject = torch.randn(2, 16)
    for step in range(steps):
        which = torch.randint(0, 2, (16,))
        ids = torch.cat([torch.randint(0, 24, (16, 4)), (first_new + which)[:, None]], dim=1)
        target = F.normalize((images[ids[:, :4]].sum(dim=1) + 2 * subject[which]) / 5, dim=-1)
        loss = tuning.step(ids, target)
        if step % 15 == 0:
            print(f"step {step} loss {loss:.4f}")
    tuning.close()
    moved = (encoder.tokens.weight - before).norm(dim=1)
    print(f"old rows moved {moved[:first_new].max().item():.6f} new rows moved {moved[first_new:].min().item():.4f}")
    return encoder


if __name__ == "__main__":
    encoder = main()
