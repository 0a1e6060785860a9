"""Predict the discharge at river gauges from local rainfall and the gauges upstream (small message-passing net)."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


def make_basin(n_nodes, n_edges, generator):
    """Random directed drainage graph; every edge carries a channel width and water runs src -> dst."""
    src = torch.randint(0, n_nodes, (n_edges,), generator=generator)
    dst = torch.randint(0, n_nodes, (n_edges,), generator=generator)
    keep = src != dst
    edge_index = torch.stack([src[keep], dst[keep]])
    width = torch.rand(edge_index.size(1), 1, generator=generator)
    rain = torch.rand(n_nodes, 3, generator=generator)

    # ground truth: runoff of the node itself, plus what all its tributaries bring in
    runoff = rain[:, 0] * 0.5 + rain[:, 1] * rain[:, 2]
    inflow = torch.zeros(n_nodes)
    inflow.index_add_(0, edge_index[1], runoff[edge_index[0]] * width.squeeze(1))
    discharge = runoff + inflow + 0.02 * torch.randn(n_nodes, generator=generator)
    return rain, edge_index, width, discharge


class FlowConv(nn.Module):
    def __init__(self, d_in, d_out, d_edge=1):
        super().__init__()
        self.message = nn.Sequential(nn.Linear(d_in + d_edge, d_out), nn.ReLU(), nn.Linear(d_out, d_out))
        self.update = nn.Linear(d_in + d_out, d_out)

    def forward(self, x, edge_index, edge_attr):
        src, dst = edge_index
        msg = self.message(torch.cat([x[src], edge_attr], dim=-1))
        agg = torch.zeros(x.size(0), msg.size(-1), dtype=msg.dtype, device=msg.device)
        agg[dst] += msg
        return F.relu(self.update(torch.cat([x, agg], dim=-1)))


class GaugeNet(nn.Module):
    def __init__(self, d_in=3, hidden=32):
        super().__init__()
        self.conv1 = FlowConv(d_in, hidden)
        self.conv2 = FlowConv(hidden, hidden)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x, edge_index, edge_attr):
        x = self.conv1(x, edge_index, edge_attr)
        x = self.conv2(x, edge_index, edge_attr)
        return self.out(x).squeeze(-1)


@torch.no_grad()
def evaluate(model, basins):
    model.eval()
    errors = [F.l1_loss(model(rain, ei, width), y) for rain, ei, width, y in basins]
    return torch.stack(errors).mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=5)
    args = parser.parse_args([])

    torch.manual_seed(args.seed)
    gen = torch.Generator().manual_seed(args.seed)
    train = [make_basin(60, 200, gen) for _ in range(12)]
    test = [make_basin(60, 200, gen) for _ in range(4)]

    model = GaugeNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for i in torch.randperm(len(train)).tolist():
            rain, edge_index, width, discharge = train[i]
            optimizer.zero_grad()
            loss = F.mse_loss(model(rain, edge_index, width), discharge)
            loss.backward()
            optimizer.step()
            total += loss.item()
        if (epoch + 1) % 10 == 0:
            print(f"epoch {epoch + 1:3d}  train mse {total / len(train):.4f}  test mae {evaluate(model, test):.4f}")
    return model, evaluate(model, test)


if __name__ == "__main__":
    model, test_mae = main()
    print(f"final test mae {test_mae:.4f}")
