import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

rng = np.random.default_rng(2)
torch.manual_seed(2)
VOCAB, WIDTH, INTENTS = 120, 10, 6


def public_vectors():
    return torch.from_numpy(rng.normal(size=(VOCAB, WIDTH)).astype(np.float32))


class IntentNet(nn.Module):
    def __init__(self, vectors):
        super().__init__()
        self.parts = nn.ModuleDict(
            {
                "words": nn.EmbeddingBag.from_pretrained(vectors, mode="sum"),
                "judge": nn.Linear(WIDTH, INTENTS),
            }
        )

    def forward(self, flat, starts):
        return self.parts["judge"](self.parts["words"](flat, starts))

    def groups(self):
        rates = {"words": 0.05, "judge": 0.01}
        return [{"params": self.parts[k].parameters(), "lr": r} for k, r in rates.items()]


def queries(n):
    intent = rng.integers(INTENTS, size=n)
    texts = []
    for k in intent:
        length = rng.integers(3, 8)
        common = rng.integers(VOCAB, size=length)
        typical = rng.integers(20, size=length) + 20 * k
        texts.append(np.where(rng.random(length) < 0.5, typical, common))
    return texts, torch.as_tensor(intent)


def pack(texts):
    starts = np.cumsum([0] + [len(t) for t in texts[:-1]])
    return torch.as_tensor(np.concatenate(texts)), torch.as_tensor(starts)


texts, intent = queries(500)
net = IntentNet(public_vectors())
opt = torch.optim.Adagrad(net.groups())
for epoch in range(6):
    total = 0.0
    for rows in np.split(rng.permutation(400), 10):
        loss = F.cross_entropy(net(*pack([texts[r] for r in rows])), intent[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() / 10
    print(f"epoch {epoch}: loss {total:.4f}")
with torch.no_grad():
    guess = net(*pack(texts[400:])).argmax(1)
print(f"accuracy {(guess == intent[400:]).float().mean():.3f}")
