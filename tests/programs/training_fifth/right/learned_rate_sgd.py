"""Hypergradient descent: the learning rate of every layer of a graph network is learned while it is used."""
import torch
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(0)

NODES, CLASSES, DIM, HIDDEN = 240, 3, 12, 16
truth = torch.randint(CLASSES, (NODES,))
chance = torch.where(truth[:, None] == truth[None, :], 0.03, 0.008)
link = torch.rand(NODES, NODES) < chance
source, target = (link | link.T).nonzero().T
features = torch.randn(CLASSES, DIM)[truth] * 0.6 + torch.randn(NODES, DIM)
train_nodes, valid_nodes, test_nodes = torch.randperm(NODES).split([100, 60, 80])


def mean_neighbours(h):
    total = torch.zeros_like(h).index_add(0, target, h[source])
    count = torch.zeros(NODES, 1).index_add(0, target, torch.ones(len(source), 1))
    return total / count.clamp(min=1)


def network(params, x):
    own1, near1, own2, near2 = params
    h = torch.relu(x @ own1 + mean_neighbours(x) @ near1)
    return h @ own2 + mean_neighbours(h) @ near2


def loss_on(params, nodes):
    return F.cross_entropy(network(params, features)[nodes], truth[nodes])


params = [
    (0.3 * torch.randn(a, b)).requires_grad_()
    for a, b in ((DIM, HIDDEN), (DIM, HIDDEN), (HIDDEN, CLASSES), (HIDDEN, CLASSES))
]
log_rates = torch.full((len(params),), -3.5, requires_grad=True)
rate_optimizer = torch.optim.Adam([log_rates], lr=0.03)

for step in range(1, 201):
    train_loss = loss_on(params, train_nodes)
    # the gradients are constants with regard to the rates: no graph of the second order is needed
    grads = torch.autograd.grad(train_loss, params)
    rates = log_rates.exp()
    moved = [p.detach() - rates[i] * g for i, (p, g) in enumerate(zip(params, grads))]
    valid_loss = loss_on(moved, valid_nodes)
    rate_optimizer.zero_grad()
    valid_loss.backward()
    rate_optimizer.step()
    with torch.no_grad():
        log_rates.clamp_(max=0.0)
    params = [m.detach().requires_grad_() for m in moved]
    if step % 40 == 0:
        with torch.no_grad():
            hit = network(params, features).argmax(-1) == truth
        print(f"step {step}  train {train_loss.item():.3f}  valid {valid_loss.item():.3f}"
              f"  rates {[round(r, 3) for r in rates.tolist()]}  test accuracy {hit[test_nodes].float().mean():.3f}")
