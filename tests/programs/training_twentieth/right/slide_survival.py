"""Survival from tissue slides: each patient is a bag of tiles, encoded by a small convolutional network.

The Cox loss couples all patients of a batch, but only a few slides fit into memory at a time. So the risks of the whole
batch are first computed without a graph, the loss is differentiated by these risks alone, and then each chunk is encoded
again with a graph and receives its part of that gradient; the parameter gradients add up over the chunks to those of the
full batch. The dropout masks of the second pass repeat those of the first.
"""
import torch
from torch import nn

torch.manual_seed(31)
TILES, CHUNK = 4, 16


def make_patients(n):
    load = torch.rand(n) * 2.0
    tiles = 0.5 * torch.randn(n, TILES, 1, 12, 12)
    spots = (torch.rand(n, TILES, 1, 12, 12) < 0.08 * load.view(n, 1, 1, 1, 1)).float()
    tiles = tiles + 1.5 * spots
    death = torch.distributions.Exponential(torch.exp(2.0 * (load - 1.0))).sample()
    leave = torch.rand(n) * 3.0
    return tiles, torch.minimum(death, leave), death <= leave


class SlideNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.tile = nn.Sequential(
            nn.Conv2d(1, 8, 3, stride=2), nn.GroupNorm(2, 8), nn.ReLU(),
            nn.Conv2d(8, 16, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2),
        )
        self.attention = nn.Linear(16, 1, bias=False)
        self.risk = nn.Linear(16, 1, bias=False)

    def forward(self, tiles):
        h = self.tile(tiles.flatten(0, 1)).view(*tiles.shape[:2], -1)
        share = torch.softmax(self.attention(h), dim=1)
        return self.risk((share * h).sum(1)).squeeze(-1)


def cox_loss(risk, time, event):
    at_risk = time[None, :] >= time[:, None]
    log_sum = torch.logsumexp(risk[None, :].masked_fill(~at_risk, float("-inf")), dim=1)
    return (log_sum - risk)[event].mean()


def concordance(risk, time, event):
    first = (time[:, None] < time[None, :]) & event[:, None]
    return ((risk[:, None] > risk[None, :]) & first).sum().item() / first.sum().item()


def backward_in_chunks(model, tiles, time, event):
    chunks = tiles.split(CHUNK)
    states, risks = [], []
    with torch.no_grad():
        for chunk in chunks:
            states.append(torch.get_rng_state())
            risks.append(model(chunk))
    after = torch.get_rng_state()
    risk = torch.cat(risks).requires_grad_(True)
    loss = cox_loss(risk, time, event)
    (grad,) = torch.autograd.grad(loss, risk)
    for chunk, state, part in zip(chunks, states, grad.split(CHUNK)):
        torch.set_rng_state(state)
        model(chunk).backward(part)
    torch.set_rng_state(after)
    return loss.item()


def main():
    tiles, time, event = make_patients(384)
    test = make_patients(300)
    model = SlideNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=80)
    for epoch in range(20):
        total = 0.0
        for index in torch.randperm(len(tiles)).split(96):
            optimizer.zero_grad()
            total += backward_in_chunks(model, tiles[index], time[index], event[index])
            optimizer.step()
            scheduler.step()
        if epoch % 5 == 4:
            model.eval()
            with torch.no_grad():
                c = concordance(model(test[0]), test[1], test[2])
            model.train()
            print(f"epoch {epoch + 1:2d}  loss {total / 4:.4f}  test C {c:.3f}")


if __name__ == "__main__":
    main()
