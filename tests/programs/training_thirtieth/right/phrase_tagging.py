"""Tags the words of phrases of different lengths; several small batches make one update, each word weighs the same."""
import torch
import torch.nn as nn
import torch.nn.functional as F

WORDS = 120
TAGS = 6
PAD = 0
IGNORE = -100
EPOCHS = 8


def make_phrases(n):
    """The tag of a word depends on the word and on the one before it."""
    lengths = torch.randint(3, 17, (n,))
    phrases = []
    for length in lengths.tolist():
        words = torch.randint(1, WORDS, (length,))
        before = torch.cat([words.new_zeros(1), words[:-1]])
        phrases.append((words, 2 * (words % 3) + before % 2))
    return phrases


def collate(phrases):
    words = nn.utils.rnn.pad_sequence([w for w, _ in phrases], batch_first=True, padding_value=PAD)
    tags = nn.utils.rnn.pad_sequence([t for _, t in phrases], batch_first=True, padding_value=IGNORE)
    return words, tags


class Tagger(nn.Module):
    def __init__(self, dim=32, width=96):
        super().__init__()
        self.embed = nn.Embedding(WORDS, dim, padding_idx=PAD)
        self.inner = nn.Linear(2 * dim, width)
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, TAGS)

    def forward(self, words):
        here = self.embed(words)
        before = F.pad(here, (0, 0, 1, 0))[:, :-1]
        return self.out(self.norm(F.gelu(self.inner(torch.cat([here, before], dim=-1)))))


def small_batches(phrases, size):
    order = torch.randperm(len(phrases)).tolist()
    return [collate([phrases[i] for i in order[k : k + size]]) for k in range(0, len(order), size)]


def grouped(batches, size):
    for k in range(0, len(batches), size):
        yield batches[k : k + size]


def accumulate(model, window):
    """Adds up the gradient of the mean loss over all the words of the window."""
    count = sum((tags != IGNORE).sum() for _, tags in window)
    total = 0.0
    for words, tags in window:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(words)
        loss = F.cross_entropy(logits.float().flatten(0, 1), tags.flatten(), ignore_index=IGNORE, reduction="sum")
        loss = loss / count
        loss.backward()
        total += loss.detach()
    return total


def train(model, phrases, window_size=4, batch_size=24, warmup=10):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.01)
    batches = -(-len(phrases) // batch_size)
    updates = EPOCHS * -(-batches // window_size)

    def factor(update):
        return min((update + 1) / warmup, max(0.05, (updates - update) / max(1, updates - warmup)))

    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
    for epoch in range(EPOCHS):
        model.train()
        losses = []
        for window in grouped(small_batches(phrases, batch_size), window_size):
            losses.append(accumulate(model, window))
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            model.zero_grad()
        print(f"epoch {epoch}  loss {torch.stack(losses).mean().item():.4f}  lr {schedule.get_last_lr()[0]:.5f}")
    return optimizer


@torch.inference_mode()
def accuracy(model, phrases):
    model.eval()
    words, tags = collate(phrases)
    real = tags != IGNORE
    return (model(words).argmax(dim=-1)[real] == tags[real]).float().mean().item()


def main():
    torch.manual_seed(31)
    phrases, held_out = make_phrases(500), make_phrases(150)
    model = Tagger()
    train(model, phrases)
    print(f"accuracy on held-out phrases {accuracy(model, held_out):.3f}")
    return model, phrases, accuracy(model, held_out)


if __name__ == "__main__":
    model, phrases, score = main()
