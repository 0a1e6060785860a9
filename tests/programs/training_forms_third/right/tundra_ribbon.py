import torch
from torch import nn

torch.manual_seed(71)


class FrameEncoder(nn.Module):
    def __init__(self, bands, width):
        super().__init__()
        self.lift = nn.Linear(bands, width)
        self.gru = nn.GRU(width, width, batch_first=True)
        self.project = nn.Linear(width, 10)

    def forward(self, clip):
        states, _ = self.gru(torch.relu(self.lift(clip)))
        return self.project(states)


class Distill:
    def __init__(self, teacher, student):
        self.teacher, self.student = teacher.requires_grad_(False), student
        self.alike = nn.CosineSimilarity(dim=-1)
        self.opt = torch.optim.Adam(student.parameters(), lr=4e-3)

    def objective(self, clip):
        goal = self.teacher(clip)
        return 1 - self.alike(self.student(clip), goal).mean()

    def run(self, source, rounds):
        for it in range(rounds):
            loss = self.objective(source())
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            if it % 20 == rounds % 20:
                print(f"round {it}: {loss.item():.4f}")
        return loss.item()


def clips():
    base = torch.randn(16, 1, 14)
    return base + 0.5 * torch.randn(16, 12, 14).cumsum(dim=1)


task = Distill(FrameEncoder(14, 24), FrameEncoder(14, 12))
print("last", task.run(clips, 80))
with torch.no_grad():
    clip = clips()
    error = (task.student(clip) - task.teacher(clip)).square().mean()
    print("distance of the frames", error.item())
