"""Federated anomaly scoring for factories whose sensors are calibrated differently (FedBN).

The server averages the linear layers. Every factory keeps its own batch-norm layers, with their statistics, since
they undo its calibration; they never leave the site. A factory is therefore scored with its own norms.
"""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 13
N_SITES, N_SENSORS, ROUNDS, LOCAL_STEPS, BATCH = 6, 16, 20, 15, 64

torch.manual_seed(SEED)
rng = np.random.default_rng(SEED)
basis = rng.standard_normal((4, N_SENSORS))
tilt = rng.standard_normal(N_SENSORS)


class Site:
    def __init__(self, template):
        self.gain = np.exp(rng.normal(0, 1.2, N_SENSORS))
        self.offset = rng.normal(0, 5.0, N_SENSORS)
        self.rate = rng.uniform(0.2, 0.5)
        self.train, self.test = self.record(int(rng.integers(300, 900))), self.record(1000)
        self.net = make_net()
        self.net.load_state_dict(template.state_dict())
        # plain SGD has no state, so that one optimizer serves all rounds
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def record(self, n):
        fault = rng.random(n) < self.rate
        x = rng.standard_normal((n, 4)) @ basis + 0.8 * rng.standard_normal((n, N_SENSORS))
        x = x + fault[:, None] * tilt * rng.choice([-1.0, 1.0], (n, 1)) * 0.6
        return torch.tensor(x * self.gain + self.offset, dtype=torch.float32), torch.tensor(fault, dtype=torch.float32)

    def local_round(self, shared):
        self.net.load_state_dict(shared, strict=False)
        self.net.train()
        x, y = self.train
        for _ in range(LOCAL_STEPS):
            rows = torch.randint(0, len(y), (BATCH,))
            loss = F.binary_cross_entropy_with_logits(self.net(x[rows]).squeeze(1), y[rows])
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
        return {k: v.detach().clone() for k, v in self.net.state_dict().items() if k in shared}, len(y)

    def accuracy(self, shared):
        self.net.load_state_dict(shared, strict=False)
        x, y = self.test
        x_train, _ = self.train
        # the averaged layers bring other activations than the ones that the running statistics were taken from
        norms = [m for m in self.net if isinstance(m, nn.BatchNorm1d)]
        kept = [(m.momentum, m.running_mean.clone(), m.running_var.clone()) for m in norms]
        with torch.no_grad():
            for m in norms:
                m.reset_running_stats()
                m.momentum = None
            self.net.train()
            for part in x_train.chunk(4):
                self.net(part)
            self.net.eval()
            hits = ((self.net(x).squeeze(1) > 0).float() == y).float().mean().item()
            for m, (momentum, mean, var) in zip(norms, kept):
                m.momentum = momentum
                m.running_mean.copy_(mean)
                m.running_var.copy_(var)
        return hits


def make_net():
    return nn.Sequential(
        nn.BatchNorm1d(N_SENSORS),
        nn.Linear(N_SENSORS, 48), nn.BatchNorm1d(48), nn.ReLU(),
        nn.Linear(48, 24), nn.BatchNorm1d(24), nn.ReLU(),
        nn.Linear(24, 1),
    )


template = make_net()
norm_keys = {f"{n}.{k}" for n, m in template.named_modules() if isinstance(m, nn.BatchNorm1d) for k in m.state_dict()}
shared = {k: v.clone() for k, v in template.state_dict().items() if k not in norm_keys}
sites = [Site(template) for _ in range(N_SITES)]
for rnd in range(ROUNDS):
    updates = [site.local_round(shared) for site in sites]
    total = sum(n for _, n in updates)
    shared = {k: sum(w[k] * (n / total) for w, n in updates) for k in shared}
    if rnd % 5 == 4:
        scores = [site.accuracy(shared) for site in sites]
        print(f"round {rnd + 1:2d}  accuracy per site " + " ".join(f"{s:.3f}" for s in scores))
print(f"mean accuracy {np.mean(scores):.4f}; {len(shared)} shared tensors, {len(norm_keys)} kept at each site")
