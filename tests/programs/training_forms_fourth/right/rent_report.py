from dataclasses import dataclass, field

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(73)
TOWNS, FACTS = 15, 10
level = torch.randn(TOWNS)


def flats(n):
    town = torch.arange(n) * TOWNS // n
    facts = torch.randn(n, FACTS)
    rent = level[town] + facts[:, :3].sum(1) * 0.4 + facts[:, 3] * facts[:, 4] * 0.3
    return TensorDataset(town, facts, rent + 0.1 * torch.randn(n) * (1 + town / 5))


class RentNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.town = nn.Embedding(TOWNS, 6)
        self.facts = nn.Sequential(nn.Linear(FACTS + 6, 48), nn.CELU(), nn.Linear(48, 1))

    def forward(self, town, facts):
        return self.facts(torch.cat([self.town(town), facts], 1)).squeeze(1)


@dataclass
class Agency:
    net: nn.Module
    past: list = field(default_factory=list)

    def __post_init__(self):
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.05, momentum=0.8)
        self.pace = torch.optim.lr_scheduler.ReduceLROnPlateau(self.opt, factor=0.3, patience=0)

    def work(self, folder):
        self.net.train()
        for town, facts, rent in folder:
            loss = nn.functional.mse_loss(self.net(town, facts), rent)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()

    @torch.inference_mode()
    def audit(self, folder):
        self.net.eval()
        report = {"mse": 0.0, "mae": 0.0, "worst": 0.0}
        for town, facts, rent in folder:
            gap = self.net(town, facts) - rent
            report["mse"] += gap.square().sum().item() / len(folder.dataset)
            report["mae"] += gap.abs().sum().item() / len(folder.dataset)
            report["worst"] = max(report["worst"], gap.abs().max().item())
        return report

    def year(self, training, checking):
        self.work(training)
        report = self.audit(checking)
        self.pace.step(report["mse"])
        self.past.append(report)
        return " ".join(f"{k} {v:.4f}" for k, v in report.items())


training = DataLoader(flats(1500), batch_size=50, shuffle=True)
checking = DataLoader(flats(430), batch_size=64)
agency = Agency(RentNet())
for year in range(8):
    print(f"year {year + 1} {agency.year(training, checking)} lr {agency.opt.param_groups[0]['lr']:.4f}")
best = min(range(8), key=lambda i: agency.past[i]["mse"])
print(f"best year {best + 1} mse {agency.past[best]['mse']:.4f}")
