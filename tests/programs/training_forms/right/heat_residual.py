import torch
from torch import nn
from torch.func import functional_call, grad, vmap


class Rod(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.up = nn.Linear(2, width)
        self.mid = nn.Linear(width, width)
        self.down = nn.Linear(width, 1)

    def forward(self, xt):
        return self.down(torch.tanh(self.mid(torch.tanh(self.up(xt))))).squeeze(-1)


def make_terms(net):
    def u(weights, x, t):
        return functional_call(net, weights, (torch.stack([x, t]),))

    def interior(weights, x, t):
        u_t = grad(u, argnums=2)
        u_xx = grad(grad(u, argnums=1), argnums=1)
        r = vmap(u_t, (None, 0, 0))(weights, x, t) - 0.1 * vmap(u_xx, (None, 0, 0))(weights, x, t)
        return r.square().mean()

    def start(weights, x, t):
        return (vmap(u, (None, 0, 0))(weights, x, t * 0) - torch.sin(torch.pi * x)).square().mean()

    def edges(weights, x, t):
        return vmap(u, (None, 0, 0))(weights, x.round(), t).square().mean()

    return {"start": start, "edges": edges, "interior": interior}


def collect(net, terms, x, t):
    weights = {k: p.detach() for k, p in net.named_parameters()}
    report = {}
    for name, term in terms.items():
        slopes, report[name] = torch.func.grad_and_value(term)(weights, x, t)
        for k, p in net.named_parameters():
            p.grad = slopes[k] if p.grad is None else p.grad + slopes[k]
    return report


def main():
    torch.manual_seed(31)
    net = Rod()
    terms = make_terms(net)
    optimizer = torch.optim.Adam(net.parameters(), lr=8e-3)
    for it in range(100):
        x, t = torch.rand(48), torch.rand(48)
        optimizer.zero_grad()
        report = collect(net, terms, x, t)
        optimizer.step()
        if it % 20 == 19:
            print(f"{it + 1:4d} " + " ".join(f"{k} {v.item():.5f}" for k, v in report.items()))


if __name__ == "__main__":
    main()
