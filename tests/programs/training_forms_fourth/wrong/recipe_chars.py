import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(1337)

text = "mix the flour and the sugar, add two eggs and stir. bake the cake for one hour and let it cool. " * 40
chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
itos = {i: c for c, i in stoi.items()}
data = torch.tensor([stoi[c] for c in text], dtype=torch.long)
split = int(0.9 * len(data))
train_data, val_data = data[:split], data[split:]

block_size = 32
batch_size = 16
max_iters = 150


def get_batch(which):
    source = train_data if which == "train" else val_data
    ix = torch.randint(len(source) - block_size - 1, (batch_size,))
    x = torch.stack([source[i:i + block_size] for i in ix])
    y = torch.stack([source[i:i + block_size] for i in ix])
    return x, y


class CharModel(nn.Module):
    def __init__(self, vocab_size, n_embd=32, n_hidden=64):
        super().__init__()
        self.token_embedding = nn.Embedding(vocab_size, n_embd)
        self.rnn = nn.GRU(n_embd, n_hidden, batch_first=True)
        self.lm_head = nn.Linear(n_hidden, vocab_size)

    def forward(self, idx, targets=None):
        out, _ = self.rnn(self.token_embedding(idx))
        logits = self.lm_head(out)
        if targets is None:
            return logits, None
        B, T, C = logits.shape
        return logits, F.cross_entropy(logits.view(B * T, C), targets.view(B * T))

    @torch.no_grad()
    def generate(self, idx, max_new_tokens):
        for _ in range(max_new_tokens):
            logits, _ = self(idx[:, -block_size:])
            probs = F.softmax(logits[:, -1], dim=-1)
            idx = torch.cat([idx, torch.multinomial(probs, 1)], dim=1)
        return idx


model = CharModel(len(chars))
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
for it in range(max_iters):
    xb, yb = get_batch("train")
    _, loss = model(xb, yb)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if it % 50 == 49:
        with torch.no_grad():
            val_loss = model(*get_batch("val"))[1]
        print(f"step {it + 1}: train loss {loss.item():.4f}, val loss {val_loss.item():.4f}")
start = torch.tensor([[stoi["m"]]])
print("".join(itos[i] for i in model.generate(start, 40)[0].tolist()))
