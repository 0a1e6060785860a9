"""Graph network on labels from several annotators; how far each is trusted is learned on a small clean set."""
import torch
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(1)

NODES, CLASSES, DIM, HIDDEN, ANNOTATORS = 300, 4, 16, 24, 6

# a citation-like graph: mostly edges within a class
truth = torch.randint(CLASSES, (NODES,))
same = truth[:, None] == truth[None, :]
edges = torch.rand(NODES, NODES) < torch.where(same, 0.02, 0.006)
adjacency = (edges | edges.T | torch.eye(NODES, dtype=torch.bool)).float()
degree = adjacency.sum(1).rsqrt()
propagate = degree[:, None] * adjacency * degree[None, :]
features = 0.5 * F.one_hot(truth, DIM).float() @ torch.randn(DIM, DIM) + torch.randn(NODES, DIM)

# every training node is labelled by one annotator; some of them confuse the classes
order = torch.randperm(NODES)
train_nodes, clean_nodes, test_nodes = order[:180], order[180:220], order[220:]
annotator = torch.randint(ANNOTATORS, (len(train_nodes),))
error_rate = torch.tensor([0.02, 0.02, 0.05, 0.9, 0.9, 0.9])[annotator]
confused = torch.rand(len(train_nodes)) < error_rate
labels = torch.where(confused, (truth[train_nodes] + 1) % CLASSES, truth[train_nodes])


def gcn(params, dropout=0.0):
    w1, b1, w2, b2 = params
    h = torch.relu(propagate @ (features @ w1) + b1)
    h = F.dropout(h, dropout)
    return propagate @ (h @ w2) + b2


def fresh_params():
    return [
        (torch.randn(DIM, HIDDEN) / DIM ** 0.5).requires_grad_(),
        torch.zeros(HIDDEN, requires_grad=True),
        (torch.randn(HIDDEN, CLASSES) / HIDDEN ** 0.5).requires_grad_(),
        torch.zeros(CLASSES, requires_grad=True),
    ]


def inner_loss(params, annotator_logits):
    weights = ANNOTATORS * annotator_logits.softmax(0)[annotator]
    each = F.cross_entropy(gcn(params, dropout=0.2)[train_nodes], labels, reduction="none")
    return (weights * each).mean()


def outer_loss(params):
    return F.cross_entropy(gcn(params)[clean_nodes], truth[clean_nodes])


def accuracy(params, nodes):
    with torch.no_grad():
        return (gcn(params)[nodes].argmax(-1) == truth[nodes]).float().mean().item()


params = fresh_params()
log_lr = torch.tensor(-1.5, requires_grad=True)
annotator_logits = torch.zeros(ANNOTATORS, requires_grad=True)
hyper_optimizer = torch.optim.Adam([
    {"params": [annotator_logits], "lr": 0.05},
    {"params": [log_lr], "lr": 0.01},
])

for iteration in range(1, 151):
    # look ahead: a few steps of gradient descent on the weighted loss, seen as a function of the hyperparameters
    ahead = params
    for _ in range(3):
        inner = inner_loss(ahead, annotator_logits)
        grads = torch.autograd.grad(inner, ahead)
        ahead = [p - log_lr.exp() * g for p, g in zip(ahead, grads)]
    outer = outer_loss(ahead)
    hyper_optimizer.zero_grad()
    outer.backward()
    hyper_optimizer.step()
    params = [p.detach().requires_grad_() for p in ahead]
    if iteration % 30 == 0:
        print(f"iteration {iteration}  inner {inner.item():.3f}  outer {outer.item():.3f}  rate {log_lr.exp().item():.3f}"
              f"  test accuracy {accuracy(params, test_nodes):.3f}")

trust = annotator_logits.softmax(0).detach()
test_accuracy = accuracy(params, test_nodes)
print("trust per annotator:", [round(t, 3) for t in trust.tolist()])
