"""Topic classification: a text encoder with pretrained weights is fine-tuned with gradual unfreezing."""
import copy

import torch
from torch import nn
import torch.nn.functional as F

VOCAB, TOPICS, LENGTH = 120, 6, 8
STAGE_STEPS = 40


def make_documents(count, generator):
    """Each topic prefers a band of the vocabulary; a negation token (0) moves the document to the next topic."""
    topics = torch.randint(0, TOPICS, (count,), generator=generator)
    band = VOCAB // TOPICS
    own = topics[:, None] * band + torch.randint(0, band, (count, LENGTH), generator=generator)
    noise = torch.randint(1, VOCAB, (count, LENGTH), generator=generator)
    tokens = torch.where(torch.rand(count, LENGTH, generator=generator) < 0.5, own, noise)
    negated = torch.rand(count, generator=generator) < 0.3
    tokens[:, 0] = torch.where(negated, torch.zeros_like(topics), tokens[:, 0].clamp(min=1))
    return tokens, torch.where(negated, (topics + 1) % TOPICS, topics)


class Encoder(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)

    def forward(self, tokens):
        states, last = self.rnn(self.embed(tokens))
        return states.mean(1) + last[0]


class Classifier(nn.Module):
    def __init__(self, encoder, dim=24):
        super().__init__()
        self.encoder = encoder
        self.head = nn.Sequential(nn.Linear(dim, 32), nn.ReLU(), nn.Linear(32, TOPICS))

    def forward(self, tokens):
        return self.head(self.encoder(tokens))


def pretrain(encoder, steps, generator):
    """Next-token prediction on unlabelled documents."""
    decoder = nn.Linear(24, VOCAB)
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=5e-3)
    for _ in range(steps):
        tokens, _ = make_documents(32, generator)
        states, _ = encoder.rnn(encoder.embed(tokens[:, :-1]))
        loss = F.cross_entropy(decoder(states).flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class Trainer:
    """Slanted triangular learning rate over the whole run; the parts of the model join one stage after the other."""

    def __init__(self, model, lr, total_steps):
        self.model, self.lr, self.total_steps = model, lr, total_steps
        model.requires_grad_(False)
        model.head.requires_grad_(True)
        self.optimizer = self.build_optimizer()
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, self.slanted)
        self.history = []

    def build_optimizer(self):
        trainable = [p for p in self.model.parameters() if p.requires_grad]
        return torch.optim.AdamW(trainable, lr=self.lr, weight_decay=0.01)

    def slanted(self, step):
        rise = 0.1 * self.total_steps
        if step < rise:
            return (step + 1) / (rise + 1)
        return max(0.0, (self.total_steps - step) / (self.total_steps - rise))

    def unfreeze(self, module):
        module.requires_grad_(True)
        self.optimizer = self.build_optimizer()

    def train_stage(self, steps, generator):
        self.model.train()
        for _ in range(steps):
            tokens, labels = make_documents(32, generator)
            loss = F.cross_entropy(self.model(tokens), labels)
            self.optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.scheduler.step()
            self.history.append(loss.item())
        recent = sum(self.history[-20:]) / 20
        print(f"step {len(self.history):4d}  lr {self.scheduler.get_last_lr()[0]:.5f}  loss {recent:.3f}")


@torch.no_grad()
def accuracy(model, tokens, labels):
    model.eval()
    return (model(tokens).argmax(-1) == labels).float().mean().item()


if __name__ == "__main__":
    torch.manual_seed(11)
    generator = torch.Generator().manual_seed(12)
    test_tokens, test_labels = make_documents(300, generator)
    encoder = Encoder()
    pretrain(encoder, 20, generator)
    model = Classifier(copy.deepcopy(encoder))
    trainer = Trainer(model, lr=1e-2, total_steps=3 * STAGE_STEPS)
    print("head only")
    trainer.train_stage(STAGE_STEPS, generator)
    for name, module in [("recurrent layer", model.encoder.rnn), ("embeddings", model.encoder.embed)]:
        print("adding", name)
        trainer.unfreeze(module)
        trainer.train_stage(STAGE_STEPS, generator)
        print(f"test accuracy {accuracy(model, test_tokens, test_labels):.3f}")
