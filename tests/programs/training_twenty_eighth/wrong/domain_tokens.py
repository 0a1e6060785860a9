"""Adds domain words to a small language model and learns vectors for them."""
import torch
import torch.nn.functional as F
from torch import nn

GENERAL, ADDED, LENGTH = 80, 8, 12


def general_text(count, generator):
    """A walk through the vocabulary: the next word is one of a few successors of the last one."""
    words = torch.randint(0, GENERAL, (count, 1), generator=generator)
    for _ in range(LENGTH):
        jump = torch.randint(1, 4, (count, 1), generator=generator)
        words = torch.cat([words, (3 * words[:, -1:] + jump) % GENERAL], dim=1)
    return words


def domain_text(count, generator):
    """General text in which every tenth word family is replaced by its domain word."""
    words = general_text(count, generator)
    return torch.where(words % 10 == 0, GENERAL + words // 10, words)


class LanguageModel(nn.Module):
    def __init__(self, vocabulary, width=48):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        nn.init.normal_(self.embedding.weight, std=0.3)
        self.recurrent = nn.GRU(width, width, batch_first=True)
        self.norm = nn.LayerNorm(width)

    def forward(self, words):
        states, _ = self.recurrent(self.embedding(words))
        return self.norm(states) @ self.embedding.weight.t()

    def loss(self, text):
        logits = self(text[:, :-1])
        return F.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())


def fit(model, optimizer, make_text, steps, generator, label):
    model.train()
    for step in range(steps):
        loss = model.loss(make_text(24, generator))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (step + 1) % 50 == 0:
            print(f"{label} step {step + 1:3d}  loss {loss.item():.4f}")


def extend_vocabulary(model, added):
    """New rows start at the mean of the pretrained ones."""
    old = model.embedding.weight.detach()
    wider = nn.Embedding(old.shape[0] + added, old.shape[1])
    with torch.no_grad():
        wider.weight[: old.shape[0]] = old
        wider.weight[old.shape[0] :] = old.mean(dim=0) + 0.02 * torch.randn(added, old.shape[1])
    model.embedding = wider


def train_only_added(model, pretrained_rows):
    """The rest of the model and the pretrained rows of the embedding stay as they are."""
    model.requires_grad_(False)
    model.embedding.weight.requires_grad_(True)
    keep = torch.zeros(model.embedding.num_embeddings, 1)
    keep[pretrained_rows:] = 1.0
    return model.embedding.weight.register_hook(lambda gradient: gradient * keep)


@torch.no_grad()
def perplexity(model, make_text, seed):
    model.eval()
    return model.loss(make_text(256, torch.Generator().manual_seed(seed))).exp().item()


def main():
    torch.manual_seed(23)
    generator = torch.Generator().manual_seed(41)
    model = LanguageModel(GENERAL)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.1)
    fit(model, optimizer, general_text, 150, generator, "pretraining")
    print(f"general text: perplexity {perplexity(model, general_text, 1):.3f}")

    extend_vocabulary(model, ADDED)
    pretrained = model.embedding.weight.detach()[:GENERAL].clone()
    handle = train_only_added(model, GENERAL)
    optimizer = torch.optim.AdamW([model.embedding.weight], lr=1e-2, weight_decay=0.1)
    print(f"domain text before: perplexity {perplexity(model, domain_text, 2):.3f}")
    fit(model, optimizer, domain_text, 150, generator, "adaptation")
    handle.remove()
    print(f"domain text after: perplexity {perplexity(model, domain_text, 2):.3f}")
    print(f"general text after: perplexity {perplexity(model, general_text, 1):.3f}")
    return model, pretrained


if __name__ == "__main__":
    model, pretrained = main()
