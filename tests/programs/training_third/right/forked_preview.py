import torch
from torch import nn
import torch.nn.functional as F


class NamesModel(nn.Module):
    def __init__(self, letters=12, context=3, width=48):
        super().__init__()
        self.letters, self.context = letters, context
        self.embed = nn.Embedding(letters, 8)
        self.net = nn.Sequential(nn.Linear(8 * context, width), nn.ReLU(), nn.Dropout(0.3), nn.Linear(width, letters))

    def forward(self, codes):
        return self.net(self.embed(codes).flatten(1))


class FixedSample:
    def __init__(self, model, seed):
        self.model, self.seed = model, seed

    def __enter__(self):
        self.state = torch.get_rng_state()
        torch.manual_seed(self.seed)
        self.mode = self.model.training
        self.model.eval()
        return self.model

    def __exit__(self, *exc):
        self.model.train(self.mode)
        torch.set_rng_state(self.state)
        return False


@torch.no_grad()
def sample(model, length=8):
    codes = [0] * model.context
    for _ in range(length):
        probs = F.softmax(model(torch.tensor([codes[-model.context :]])), -1)
        codes.append(torch.multinomial(probs[0], 1).item())
    return codes[model.context :]


def names(n, g):
    table = torch.softmax(2.5 * torch.randn(12, 12, generator=g), -1)
    out = [0, 0, 0]
    for _ in range(n):
        out.append(torch.multinomial(table[out[-1]], 1, generator=g).item())
    return torch.tensor(out).unfold(0, 4, 1)


def train(model, rows, steps=60):
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    model.train()
    for step in range(steps):
        batch = rows[torch.randint(0, len(rows), (32,))]
        loss = F.cross_entropy(model(batch[:, :-1]), batch[:, -1])
        opt.zero_grad()
        loss.backward()
        opt.step()
        with FixedSample(model, 123) as frozen:
            preview = sample(frozen)
        if step % 20 == 19:
            print(f"step {step + 1} loss {loss.item():.3f} preview {preview}")


if __name__ == "__main__":
    torch.manual_seed(0)
    model = NamesModel()
    train(model, names(600, torch.Generator().manual_seed(1)))
