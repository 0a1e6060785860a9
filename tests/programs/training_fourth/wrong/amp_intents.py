"""Intent classification with fp16 autocast and loss scaling."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
VOCAB, LENGTH, INTENTS = 120, 12, 5


def sentences(n):
    labels = torch.randint(0, INTENTS, (n,))
    tokens = torch.randint(20, VOCAB, (n, LENGTH))
    cue = labels[:, None] * 4 + torch.randint(0, 4, (n, 3))
    places = torch.rand(n, LENGTH).argsort(1)[:, :3]
    tokens.scatter_(1, places, cue)
    return tokens, labels


class IntentNet(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.mix = nn.Sequential(nn.Linear(dim, 64), nn.GELU(), nn.Linear(64, dim))
        self.out = nn.Linear(dim, INTENTS)

    def forward(self, tokens):
        h = self.embed(tokens)
        h = h + self.mix(h)
        return self.out(h.mean(1))


class AmpTrainer:
    def __init__(self, model, lr=0.2, clip=1.0):
        self.model, self.clip = model, clip
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 14, growth_interval=500)

    def step(self, tokens, labels):
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.float16):
            logits = self.model(tokens)
            loss = F.cross_entropy(logits.float(), labels)
        self.scaler.scale(loss).backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.item()

    @torch.no_grad()
    def accuracy(self, tokens, labels):
        return (self.model(tokens).argmax(1) == labels).float().mean().item()


def main():
    model = IntentNet()
    trainer = AmpTrainer(model)
    train_tokens, train_labels = sentences(800)
    test_tokens, test_labels = sentences(500)
    initial = [p.detach().clone() for p in model.parameters()]
    for epoch in range(8):
        losses = [trainer.step(train_tokens[i], train_labels[i]) for i in torch.randperm(800).split(40)]
        print(f"epoch {epoch} loss {sum(losses) / len(losses):.4f} scale {trainer.scaler.get_scale():.0f}")
    acc = trainer.accuracy(test_tokens, test_labels)
    moved = sum((p - q).norm() ** 2 for p, q in zip(model.parameters(), initial)).sqrt().item()
    print(f"test accuracy {acc:.3f}")
    return acc, moved


if __name__ == "__main__":
    acc, moved = main()
