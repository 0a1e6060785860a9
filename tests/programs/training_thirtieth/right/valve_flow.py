"""Flow through a control valve; the net computes in bfloat16, the updates are made on copies in full precision."""
import io

import torch
import torch.nn as nn
import torch.nn.functional as F

TOTAL = 240
HALF = 120


def make_valves(n):
    x = 2 * torch.rand(n, 5) - 1
    opening, pressure = (x[:, 0] + 1) / 2, (x[:, 1] + 1) / 2
    flow = torch.exp(3.0 * (opening - 1)) * torch.sqrt(pressure + 0.05) * (1 + 0.2 * x[:, 2] * x[:, 3])
    return x, (flow - flow.mean()) / flow.std() + 0.05 * torch.randn(n)


class ValveNet(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(5, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1)
        )

    def forward(self, x):
        return self.layers(x).squeeze(-1)


class MixedTrainer:
    def __init__(self, data, lr=3e-3, clip=1.0):
        self.inputs, self.targets = data
        self.model = ValveNet().bfloat16()
        self.weights = list(self.model.parameters())
        self.masters = [p.detach().float().requires_grad_() for p in self.weights]
        self.optimizer = torch.optim.AdamW(self.masters, lr=lr, weight_decay=1e-3)
        self.schedule = torch.optim.lr_scheduler.SequentialLR(
            self.optimizer,
            [
                torch.optim.lr_scheduler.LinearLR(self.optimizer, start_factor=0.1, total_iters=20),
                torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, TOTAL - 20, eta_min=1e-4),
            ],
            milestones=[20],
        )
        self.clip = clip
        self.order = torch.Generator().manual_seed(7)
        self.step = 0

    @torch.no_grad()
    def push(self):
        for p, master in zip(self.weights, self.masters):
            p.copy_(master)

    def update(self):
        rows = torch.randint(0, len(self.inputs), (64,), generator=self.order)
        prediction = self.model(self.inputs[rows].bfloat16())
        loss = F.smooth_l1_loss(prediction.float(), self.targets[rows])
        self.model.zero_grad()
        loss.backward()
        for p, master in zip(self.weights, self.masters):
            master.grad = p.grad.float()
        nn.utils.clip_grad_norm_(self.masters, self.clip)
        self.optimizer.step()
        self.schedule.step()
        self.push()
        self.step += 1
        return loss.detach()

    def fit(self, until):
        losses = []
        while self.step < until:
            losses.append(self.update())
        return torch.stack(losses).tolist()

    @torch.no_grad()
    def error(self, inputs, targets):
        return F.mse_loss(self.model(inputs.bfloat16()).float(), targets).item()

    def save(self, file):
        state = {"masters": self.masters, "optimizer": self.optimizer.state_dict(), "schedule": self.schedule.state_dict()}
        torch.save({**state, "order": self.order.get_state(), "step": self.step}, file)

    def load(self, file):
        state = torch.load(file, weights_only=True)
        with torch.no_grad():
            for master, saved in zip(self.masters, state["masters"], strict=True):
                master.copy_(saved)
        self.push()
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])
        self.order.set_state(state["order"])
        self.step = state["step"]


def main():
    torch.manual_seed(29)
    data, test = make_valves(2000), make_valves(500)
    first = MixedTrainer(data)
    losses = first.fit(until=HALF)
    print(f"first half: loss {sum(losses[-20:]) / 20:.4f}  test error {first.error(*test):.4f}")
    file = io.BytesIO()
    first.save(file)
    file.seek(0)
    second = MixedTrainer(data)
    second.load(file)
    losses += second.fit(until=TOTAL)
    print(f"second half: loss {sum(losses[-20:]) / 20:.4f}  test error {second.error(*test):.4f}")
    return first, second, losses, data, test


if __name__ == "__main__":
    first, second, losses, data, test = main()
