import torch
from torch import nn

torch.manual_seed(41)


class Listener(nn.Module):
    def __init__(self, n_in, width):
        super().__init__()
        self.fast = nn.Linear(n_in + width, width)
        self.slow = nn.Linear(n_in + width, width)
        self.read = nn.Linear(width, 1)

    def begin(self, n):
        width = self.fast.out_features
        return {"trace": torch.zeros(n, width), "level": torch.zeros(n, width)}

    def advance(self, frame, memory):
        both = torch.cat([frame, memory["trace"]], dim=1)
        gate = torch.sigmoid(self.slow(both))
        level = torch.lerp(memory["level"], torch.tanh(self.fast(both)), gate)
        return {"trace": torch.tanh(level), "level": level}

    def answer(self, memory):
        return self.read(memory["trace"]).squeeze(1)


def frames(n, length=12):
    signal = torch.rand(n, length) * 2 - 1
    past = torch.cat([torch.zeros(n, 3), signal[:, :-3]], dim=1)
    return signal.unsqueeze(-1), past


class Course:
    def __init__(self, listener):
        self.listener = listener
        self.optimizer = torch.optim.Adamax(listener.parameters(), lr=0.02)

    def lesson(self, x, wanted):
        memory = self.listener.begin(len(x))
        loss = torch.zeros(())
        for t, frame in enumerate(x.unbind(1)):
            memory = self.listener.advance(frame, memory)
            loss = loss + nn.functional.mse_loss(self.listener.answer(memory), wanted[:, t])
            memory = {key: value.detach() for key, value in memory.items()}
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item() / x.shape[1]


course = Course(Listener(1, 24))
for step in range(250):
    loss = course.lesson(*frames(64))
    if step % 50 == 49:
        print(f"lesson {step + 1:3d}  error {loss:.4f}")
