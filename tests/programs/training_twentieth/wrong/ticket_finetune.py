"""Fine-tune a small text encoder on support tickets, in bfloat16 on CPU."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(7)

VOCAB, LENGTH, DIM, CLASSES = 120, 16, 48, 6
N_PRETRAIN, N_TICKETS, N_TEST = 1536, 768, 512


def make_topics(n_classes, generator):
    logits = 1.3 * torch.randn(n_classes, VOCAB, generator=generator)
    return logits


def sample(topic_logits, n, generator):
    labels = torch.randint(0, topic_logits.shape[0], (n,), generator=generator)
    probs = topic_logits.softmax(-1)[labels]
    tokens = torch.multinomial(probs, LENGTH, replacement=True, generator=generator)
    return tokens, labels


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, DIM)
        self.pos = nn.Parameter(torch.randn(LENGTH, DIM) * 0.02)
        layer = nn.TransformerEncoderLayer(DIM, 4, 96, dropout=0.0, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 1)
        self.norm = nn.LayerNorm(DIM)
        self.head = nn.Linear(DIM, CLASSES)

    def forward(self, tokens):
        h = self.body(self.tok(tokens) + self.pos)
        return self.head(self.norm(h.mean(1)))


def fit(model, tokens, labels, lr, epochs, batch_size=64):
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.01)
    steps = epochs * (len(tokens) // batch_size)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps, eta_min=lr * 0.2)
    model.train()
    for epoch in range(epochs):
        total = 0.0
        order = torch.randperm(len(tokens))
        for idx in order.split(batch_size):
            logits = model(tokens[idx])
            loss = F.cross_entropy(logits.float(), labels[idx])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            total += loss.item() * len(idx)
        print(f"  epoch {epoch}  loss {total / len(tokens):.4f}")
    return model


@torch.no_grad()
def evaluate(model, tokens, labels):
    model.eval()
    logits = model(tokens).float()
    accuracy = (logits.argmax(-1) == labels).float().mean().item()
    return F.cross_entropy(logits, labels).item(), accuracy


def main():
    g = torch.Generator().manual_seed(11)
    general = make_topics(CLASSES, g)
    # The tickets speak of the same topics in the words of another department.
    tickets = 0.45 * general + 0.45 * make_topics(CLASSES, g)
    pre_x, pre_y = sample(general, N_PRETRAIN, g)
    tune_x, tune_y = sample(tickets, N_TICKETS, g)
    test_x, test_y = sample(tickets, N_TEST, g)

    print("pretraining")
    pretrained = fit(Encoder(), pre_x, pre_y, lr=2e-3, epochs=3)
    loss, accuracy = evaluate(pretrained, test_x, test_y)
    print(f"before fine-tuning: loss {loss:.4f}  accuracy {accuracy:.3f}")

    print("fine-tuning")
    tuned = copy.deepcopy(pretrained).to(torch.bfloat16)
    tuned = fit(tuned, tune_x, tune_y, lr=5e-5, epochs=10, batch_size=32)
    loss, accuracy = evaluate(tuned, test_x, test_y)
    print(f"after fine-tuning: loss {loss:.4f}  accuracy {accuracy:.3f}")
    return pretrained, tuned, loss


if __name__ == "__main__":
    main()
