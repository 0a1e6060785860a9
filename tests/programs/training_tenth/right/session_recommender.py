import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(17)
ITEMS, LENGTH, PAD, GENRES = 60, 8, 0, 6


def make_sessions(count):
    genre = torch.randint(GENRES, (count,))
    pick = torch.randint(10, (count, LENGTH + 1))
    stray = torch.rand(count, LENGTH + 1) < 0.1
    items = torch.where(stray, torch.randint(ITEMS, pick.shape), genre[:, None] * 10 + pick) + 1
    known = torch.randint(2, LENGTH + 1, (count,))
    history = items[:, :LENGTH].masked_fill(torch.arange(LENGTH) >= known[:, None], PAD)
    dwell = 0.4 * genre.float() - 1.0 + 0.05 * known + 0.1 * torch.randn(count)
    return history, items[:, LENGTH], dwell


class Recommender(nn.Module):
    """One item table reads the history and scores the next item; a second task predicts dwell time."""

    def __init__(self, width=24):
        super().__init__()
        self.item = nn.Embedding(ITEMS + 1, width)
        nn.init.normal_(self.item.weight, std=0.1)
        with torch.no_grad():
            self.item.weight[PAD].zero_()
        keep = torch.ones(ITEMS + 1, 1)
        keep[PAD] = 0
        self.register_buffer("keep", keep)
        self.item.weight.register_hook(lambda gradient: gradient * self.keep)
        self.encoder = nn.Sequential(nn.Linear(width, 48), nn.ReLU(), nn.Linear(48, width))
        self.dwell = nn.Linear(width + 1, 1)
        self.register_buffer("popularity", torch.zeros(ITEMS))

    def forward(self, history):
        seen = (history != PAD).float()
        count = seen.sum(1, keepdim=True)
        profile = self.encoder(self.item(history).sum(1) / count)
        scores = profile @ self.item.weight[1:].T + self.popularity
        return scores, self.dwell(torch.cat([profile, count / LENGTH], dim=1)).squeeze(1)

    def shared(self):
        return [self.item.weight, *self.encoder.parameters()]

    @torch.no_grad()
    def count_items(self, target):
        rate = torch.bincount(target - 1, minlength=ITEMS).float().add(1)
        self.popularity.mul_(0.95).add_((rate / rate.sum()).log(), alpha=0.05)


def flatten(tensors):
    return torch.cat([t.flatten() for t in tensors])


def without_conflict(gradients):
    flat = [flatten(g) for g in gradients]
    mended = []
    for i, own in enumerate(flat):
        result = own.clone()
        for j, other in enumerate(flat):
            overlap = result @ other
            if i != j and overlap < 0:
                result -= overlap / other.pow(2).sum() * other
        mended.append(result)
    return torch.stack(mended).sum(0)


def write_grad(parameters, flat):
    offset = 0
    for p in parameters:
        p.grad = flat[offset:offset + p.numel()].view_as(p).clone()
        offset += p.numel()


history, target, dwell = make_sessions(2000)
test_history, test_target, test_dwell = make_sessions(500)
model = Recommender()
table_optimizer = torch.optim.Adagrad([model.item.weight], lr=0.05)
optimizer = torch.optim.AdamW([*model.encoder.parameters(), *model.dwell.parameters()], lr=3e-3)
for epoch in range(12):
    for idx in torch.randperm(len(history)).split(100):
        scores, guess = model(history[idx])
        next_loss = F.cross_entropy(scores, target[idx] - 1)
        dwell_loss = F.smooth_l1_loss(guess, dwell[idx])
        shared, own = model.shared(), list(model.dwell.parameters())
        first = torch.autograd.grad(next_loss, shared, retain_graph=True)
        second = torch.autograd.grad(dwell_loss, shared + own)
        write_grad(shared, without_conflict([first, second[:len(shared)]]))
        write_grad(own, flatten(second[len(shared):]))
        table_optimizer.step()
        optimizer.step()
        model.count_items(target[idx])

with torch.no_grad():
    scores, guess = model(test_history)
hit = (scores.topk(10, dim=1).indices == (test_target - 1)[:, None]).any(1).float().mean().item()
print(f"hit@10 {hit:.3f}  dwell error {F.mse_loss(guess, test_dwell).item():.4f} (variance {test_dwell.var().item():.3f})"
      f"  pad row {model.item.weight[PAD].norm().item():.1f}")
