import torch
import torch.nn as nn
import torch.nn.functional as F


class BlockUpdater(nn.Module):
    def __init__(self, hidden=16):
        super().__init__()
        self.cell = nn.GRUCell(2, hidden)
        self.head = nn.Linear(hidden, 1)
        self.hidden = hidden

    def init_state(self, n):
        return torch.zeros(n, self.hidden)

    def forward(self, grad, state):
        mag = torch.log(grad.abs() + 1e-6) / 10
        feats = torch.stack([mag, grad.sign()], dim=1)
        state = self.cell(feats, state)
        return 0.1 * self.head(state).squeeze(1) - 0.05 * grad, state


class Optimizee:
    def __init__(self, n_in=5, width=8):
        self.shapes = [(width, n_in), (width,), (1, width), (1,)]
        self.sizes = [torch.Size(s).numel() for s in self.shapes]

    @property
    def blocks(self):
        ends = torch.tensor(self.sizes).cumsum(0).tolist()
        return [(e - n, e) for e, n in zip(ends, self.sizes)]

    def loss(self, theta, x, y):
        w1, b1, w2, b2 = [theta[a:b].view(s) for (a, b), s in zip(self.blocks, self.shapes)]
        h = torch.tanh(F.linear(x, w1, b1))
        return F.mse_loss(F.linear(h, w2, b2).squeeze(1), y)


class MetaTrainer:
    def __init__(self, problem, unroll=5):
        self.problem = problem
        self.unroll = unroll
        self.theta0 = nn.Parameter(0.3 * torch.randn(sum(problem.sizes)))
        self.updaters = nn.ModuleList([BlockUpdater() for _ in problem.sizes])
        self.opt = torch.optim.Adam([self.theta0, *self.updaters.parameters()], lr=5e-3)

    def apply_updates(self, theta, grad, states):
        for i, (a, b) in enumerate(self.problem.blocks):
            delta, states[i] = self.updaters[i](grad[a:b], states[i])
            theta[a:b] += delta
        return theta

    def meta_step(self, x, y):
        theta = self.theta0.clone()
        states = [u.init_state(n) for u, n in zip(self.updaters, self.problem.sizes)]
        meta_loss = 0
        for k in range(self.unroll):
            loss = self.problem.loss(theta, x, y)
            (grad,) = torch.autograd.grad(loss, theta, retain_graph=True)
            meta_loss = meta_loss + (k + 1) * loss
            theta = self.apply_updates(theta, grad.detach(), states)
        meta_loss = (meta_loss + (self.unroll + 1) * self.problem.loss(theta, x, y)) / 21
        self.opt.zero_grad()
        meta_loss.backward()
        self.opt.step()
        return meta_loss.item()


def main():
    torch.manual_seed(17)
    trainer = MetaTrainer(Optimizee())
    for it in range(25):
        w = torch.randn(5)
        x = torch.randn(40, 5)
        loss = trainer.meta_step(x, torch.sin(x @ w))
        if it % 6 == 0:
            print(f"meta {it} loss {loss:.4f}")


if __name__ == "__main__":
    main()
