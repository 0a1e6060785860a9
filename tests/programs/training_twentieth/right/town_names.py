"""Character LSTM that writes town names; big batches are split into micro-batches to save memory.

The names have very different lengths, so the gradient of a big batch is the sum over all its characters divided by
their number, however the names fall into micro-batches. Early stopping on the validation loss.
"""
import copy
import random
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 29
BIG_BATCH, MICRO_BATCH, MAX_EPOCHS, PATIENCE = 96, 24, 14, 2
PAD, START, END = 0, 1, 2

random.seed(SEED)
torch.manual_seed(SEED)

FRONT = ["ash", "black", "brad", "nor", "ox", "stan", "win", "hamp", "lang", "wood"]
MIDDLE = ["", "", "ing", "er", "en", "-on-the-"]
BACK = ["ton", "ford", "ham", "bury", "field", "wick", "hill", "mouth"]


def make_name():
    return random.choice(FRONT) + random.choice(MIDDLE) + random.choice(BACK)


stoi = {c: i + 3 for i, c in enumerate(sorted(set("".join(FRONT + MIDDLE + BACK))))}
itos = {i: c for c, i in stoi.items()}


def collate(names):
    rows = [torch.tensor([START] + [stoi[c] for c in n] + [END]) for n in names]
    padded = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)
    return padded[:, :-1], padded[:, 1:]


class NameLSTM(nn.Module):
    def __init__(self, n_tokens, width=48):
        super().__init__()
        self.emb = nn.Embedding(n_tokens, width, padding_idx=PAD)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.drop = nn.Dropout(0.1)
        self.out = nn.Linear(width, n_tokens)
        self.out.weight = self.emb.weight

    def forward(self, x, state=None):
        h, state = self.lstm(self.emb(x), state)
        return self.out(self.drop(h)), state


def summed_loss(model, names):
    x, y = collate(names)
    logits, _ = model(x)
    loss = F.cross_entropy(logits.flatten(0, 1), y.flatten(), ignore_index=PAD, reduction="sum")
    return loss, (y != PAD).sum().item()


def valid_loss(model, names):
    model.eval()
    with torch.no_grad():
        loss, count = summed_loss(model, names)
    model.train()
    return loss.item() / count


def write_name(model):
    model.eval()
    x, state, name = torch.tensor([[START]]), None, ""
    with torch.no_grad():
        while len(name) < 24:
            logits, state = model(x, state)
            logits[..., [PAD, START]] = float("-inf")
            x = torch.multinomial(logits[:, -1].softmax(dim=-1), 1)
            if x.item() == END:
                break
            name += itos[x.item()]
    return name


train_names, valid_names = [make_name() for _ in range(1500)], [make_name() for _ in range(300)]
model = NameLSTM(len(stoi) + 3)
optimizer = torch.optim.Adam(model.parameters(), lr=8e-3)
best_loss, best_state, waited = float("inf"), None, 0

for epoch in range(1, MAX_EPOCHS + 1):
    random.shuffle(train_names)
    for big in range(0, len(train_names), BIG_BATCH):
        batch = train_names[big : big + BIG_BATCH]
        optimizer.zero_grad()
        n_chars = 0
        for micro in range(0, len(batch), MICRO_BATCH):
            loss, count = summed_loss(model, batch[micro : micro + MICRO_BATCH])
            loss.backward()
            n_chars += count
        for p in model.parameters():
            p.grad.div_(n_chars)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    current = valid_loss(model, valid_names)
    print(f"epoch {epoch}: valid loss per character {current:.4f}")
    if current < best_loss:
        best_loss, best_state, waited = current, copy.deepcopy(model.state_dict()), 0
    else:
        waited += 1
    if waited == PATIENCE:
        break

model.load_state_dict(best_state)
print(f"best {best_loss:.4f}, again {valid_loss(model, valid_names):.4f}:", ", ".join(write_name(model) for _ in range(5)))
