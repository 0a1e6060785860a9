"""Distil a prompted classifier: soft prompts tuned in front of a frozen encoder, then a small student learns from it."""
import torch
import torch.nn.functional as F
from torch import nn

VOCAB, CLASSES, LENGTH, DIM, PROMPT = 40, 4, 8, 32, 4
MASK = VOCAB


class Encoder(nn.Module):
    """One attention block over the sentence; works on vectors so that a prompt can be put in front."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB + 1, DIM)
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.norm = nn.LayerNorm(DIM)
        self.feed = nn.Sequential(nn.Linear(DIM, 2 * DIM), nn.GELU(), nn.Dropout(0.1), nn.Linear(2 * DIM, DIM))

    def forward(self, vectors):
        q, k, v = self.qkv(vectors).chunk(3, dim=-1)
        vectors = vectors + F.scaled_dot_product_attention(q, k, v)
        return vectors + self.feed(self.norm(vectors))


class PromptedClassifier(nn.Module):
    """The encoder stays frozen and in evaluation mode; the prompt and a linear head are learnt."""

    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder.requires_grad_(False)
        start = torch.randperm(VOCAB)[:PROMPT]
        self.prompt = nn.Parameter(encoder.embed.weight[start].detach().clone())
        self.head = nn.Linear(DIM, CLASSES)
        nn.init.zeros_(self.head.weight)

    def train(self, mode=True):
        super().train(mode)
        self.encoder.eval()
        return self

    def forward(self, ids):
        prompt = self.prompt.expand(ids.size(0), -1, -1)
        states = self.encoder(torch.cat([prompt, self.encoder.embed(ids)], dim=1))
        return self.head(states.mean(dim=1))


class BagStudent(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(VOCAB, 16, mode="mean")
        self.layers = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, CLASSES))

    def forward(self, ids):
        return self.layers(self.bag(ids))


def sample(count, generator):
    """The class decides which of the words are likely."""
    topic = torch.randint(CLASSES, (count,), generator=generator)
    likely = (torch.arange(VOCAB) % CLASSES == topic[:, None]).float()
    return torch.multinomial(0.12 + likely, LENGTH, replacement=True, generator=generator), topic


def pretrain(encoder, steps, generator):
    optimizer = torch.optim.Adam(encoder.parameters(), lr=5e-3)
    for _ in range(steps):
        ids, _ = sample(32, generator)
        hidden = torch.rand(ids.shape, generator=generator) < 0.25
        states = encoder(encoder.embed(ids.masked_fill(hidden, MASK)))
        loss = F.cross_entropy(F.linear(states[hidden], encoder.embed.weight[:VOCAB]), ids[hidden])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def accuracy(model, ids, topic):
    with torch.inference_mode():
        return (model.eval()(ids).argmax(-1) == topic).float().mean().item()


torch.manual_seed(31)
generator = torch.Generator().manual_seed(7)
test = sample(500, generator)
encoder = Encoder()
nn.init.normal_(encoder.embed.weight, std=0.5)
print(f"masked word loss {pretrain(encoder, 120, generator):.3f}")

teacher = PromptedClassifier(encoder)
optimizer = torch.optim.Adam(
    [{"params": [teacher.prompt], "lr": 3e-2}, {"params": teacher.head.parameters(), "lr": 1e-2}]
)
teacher.train()
for step in range(80):
    ids, topic = sample(32, generator)
    loss = F.cross_entropy(teacher(ids), topic)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"prompted loss {loss.item():.3f}  accuracy {accuracy(teacher, *test):.3f}")

student, temperature = BagStudent(), 2.0
optimizer = torch.optim.Adam(student.parameters(), lr=2e-2)
teacher.eval()
student.train()
for step in range(80):
    ids, _ = sample(32, generator)
    target = F.log_softmax(teacher(ids).detach() / temperature, dim=-1)
    guess = F.log_softmax(student(ids) / temperature, dim=-1)
    loss = temperature**2 * F.kl_div(guess, target, reduction="batchmean", log_target=True)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"distillation loss {loss.item():.4f}  student accuracy {accuracy(student, *test):.3f}")
