"""A small language model with a mixture-of-experts feed-forward layer, trained on text from several registers."""
import torch
from torch import nn
import torch.nn.functional as F

VOCAB, REGISTERS, LENGTH = 32, 4, 8
EXPERTS, TOP_K = 4, 1


def make_text(count, generator):
    """The first token names the register; each register has its own rule for the next word."""
    register = torch.randint(0, REGISTERS, (count,), generator=generator)
    words = [torch.randint(REGISTERS, VOCAB, (count,), generator=generator)]
    for _ in range(LENGTH - 1):
        step = (words[-1] - REGISTERS) * (2 * register + 1) + 3 * register + 1
        words.append(step % (VOCAB - REGISTERS) + REGISTERS)
    return torch.stack([register, *words], dim=1)


class Expert(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.up = nn.Linear(dim, hidden)
        self.down = nn.Linear(hidden, dim)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


class MixtureLayer(nn.Module):
    """Sends every token to its top_k experts and adds their outputs with normalised weights."""

    def __init__(self, dim, hidden, experts, top_k):
        super().__init__()
        self.top_k = top_k
        self.router = nn.Linear(dim, experts, bias=False)
        self.experts = nn.ModuleList(Expert(dim, hidden) for _ in range(experts))
        self.register_buffer("load", torch.zeros(experts))

    def forward(self, x):
        tokens = x.reshape(-1, x.shape[-1])
        scores, chosen = self.router(tokens).topk(self.top_k, dim=-1)
        weights = scores.softmax(dim=-1)
        output = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):
            row, slot = torch.where(chosen == number)
            if len(row):
                output = output.index_add(0, row, expert(tokens[row]) * weights[row, slot, None])
        if self.training:
            counts = torch.bincount(chosen.flatten(), minlength=len(self.experts)).float()
            self.load.lerp_(counts / counts.sum(), 0.05)
        return output.view_as(x)


class RegisterModel(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.context = nn.GRU(dim, dim, batch_first=True)
        self.norm = nn.LayerNorm(dim)
        self.mixture = MixtureLayer(dim, 48, EXPERTS, TOP_K)
        self.final = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, VOCAB)

    def forward(self, tokens):
        embedded = self.embed(tokens)
        states = embedded + self.context(embedded)[0]
        states = states + self.mixture(self.norm(states))
        return self.head(self.final(states))


def sequence_loss(model, tokens):
    logits = model(tokens[:, :-1])
    # the first word is drawn at random, so the loss starts with the second
    return F.cross_entropy(logits[:, 1:].flatten(0, 1), tokens[:, 2:].flatten())


@torch.no_grad()
def evaluate(model, tokens):
    model.eval()
    loss = sequence_loss(model, tokens).item()
    model.train()
    return loss


def main(steps=80):
    torch.manual_seed(5)
    generator = torch.Generator().manual_seed(6)
    held_out = make_text(100, generator)
    model = RegisterModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=6e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for step in range(1, steps + 1):
        loss = sequence_loss(model, make_text(32, generator))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 20 == 0:
            load = " ".join(f"{share:.2f}" for share in model.mixture.load.tolist())
            print(f"step {step:4d}  loss {loss.item():.3f}  held out {evaluate(model, held_out):.3f}  load {load}")
    return model


if __name__ == "__main__":
    model = main()
