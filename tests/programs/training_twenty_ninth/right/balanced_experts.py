"""Intent classification with a mixture of experts, balanced without an auxiliary loss: each expert has a bias that
takes part in the choice of experts only, and that follows the load (the method of DeepSeek-V3)."""
import torch
from torch import nn
import torch.nn.functional as F

VOCAB, INTENTS, LENGTH = 64, 8, 8


def make_utterances(count, generator):
    """Every intent has its own words; intents are far from equally frequent."""
    frequency = 1.0 / torch.arange(1, INTENTS + 1)
    intent = torch.multinomial(frequency, count, replacement=True, generator=generator)
    own = intent[:, None] * 8 + torch.randint(0, 8, (count, LENGTH), generator=generator)
    other = torch.randint(0, VOCAB, (count, LENGTH), generator=generator)
    return torch.where(torch.rand(count, LENGTH, generator=generator) < 0.5, own, other), intent


class BalancedMixture(nn.Module):
    def __init__(self, dim, hidden, experts=4, top_k=2, speed=0.01):
        super().__init__()
        self.top_k, self.speed = top_k, speed
        self.router = nn.Linear(dim, experts, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(dim, hidden), nn.SiLU(), nn.Linear(hidden, dim)) for _ in range(experts))
        self.register_buffer("bias", torch.zeros(experts))
        self.register_buffer("counts", torch.zeros(experts))

    def forward(self, x):
        tokens = x.flatten(0, -2)
        affinity = self.router(tokens).sigmoid()
        chosen = (affinity.detach() + self.bias).topk(self.top_k, dim=-1).indices
        gates = affinity.gather(-1, chosen)
        gates = gates / gates.sum(-1, keepdim=True)
        output = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):
            row, slot = torch.where(chosen == number)
            output.index_add_(0, row, expert(tokens[row]) * gates[row, slot].unsqueeze(-1))
        if self.training:
            self.counts += torch.bincount(chosen.flatten(), minlength=len(self.experts))
        return output.view_as(x)

    @torch.no_grad()
    def adjust(self):
        """Once per step: raises the bias of experts with less than the mean load and lowers the others."""
        self.bias += self.speed * torch.sign(self.counts.mean() - self.counts)
        load = self.counts / self.counts.sum()
        self.counts.zero_()
        return load


class IntentModel(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.norm = nn.LayerNorm(dim)
        self.mixture = BalancedMixture(dim, 32)
        self.head = nn.Linear(dim, INTENTS)

    def forward(self, tokens):
        x = self.embed(tokens)
        x = x + self.mixture(self.norm(x))
        return self.head(x.mean(1))


@torch.no_grad()
def accuracy(model, tokens, intents):
    model.eval()
    result = (model(tokens).argmax(-1) == intents).float().mean().item()
    model.train()
    return result


def main(steps=100):
    torch.manual_seed(41)
    generator = torch.Generator().manual_seed(42)
    test = make_utterances(300, generator)
    model = IntentModel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=1e-3)
    for step in range(1, steps + 1):
        tokens, intents = make_utterances(32, generator)
        loss = F.cross_entropy(model(tokens), intents)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        load = model.mixture.adjust()
        if step % 20 == 0:
            shares = " ".join(f"{share:.2f}" for share in load.tolist())
            print(f"step {step:3d}  loss {loss.item():.3f}  accuracy {accuracy(model, *test):.3f}  load {shares}")
    return model


if __name__ == "__main__":
    model = main()
    print("bias of the choice:", " ".join(f"{b:+.2f}" for b in model.mixture.bias.tolist()))
