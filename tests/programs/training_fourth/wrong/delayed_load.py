"""Forecast the return flow of a heating network, which answers to the supply with a delay."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def heating(batch, steps, delay=5, generator=None):
    supply = torch.randn(batch, steps, generator=generator)
    answer = torch.zeros(batch, steps)
    answer[:, delay:] = supply[:, :-delay]
    noise = 0.1 * torch.randn(batch, steps, generator=generator)
    return supply[..., None], answer + noise


class FlowModel(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.hidden = hidden
        self.cell = nn.GRUCell(1, hidden)
        self.readout = nn.Linear(hidden, 1)

    def start(self, batch):
        return torch.zeros(batch, self.hidden)

    def forward(self, inputs, state):
        outputs = []
        for x in inputs.unbind(1):
            state = self.cell(x, state.detach())
            outputs.append(self.readout(state).squeeze(1))
        return torch.stack(outputs, 1), state


class Forecast:
    """Stateful training: a long record is cut into chunks, and the state is carried from chunk to chunk."""

    def __init__(self, chunk=20, batch=32, lr=1e-2):
        self.chunk, self.batch = chunk, batch
        self.model = FlowModel()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=lr)

    def train_record(self, inputs, target):
        state = self.model.start(len(inputs))
        total, chunks = 0.0, 0
        for start in range(0, inputs.shape[1], self.chunk):
            part = slice(start, start + self.chunk)
            prediction, state = self.model(inputs[:, part], state)
            loss = F.mse_loss(prediction, target[:, part])
            self.optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            state = state.detach()
            total += loss.item()
            chunks += 1
        return total / chunks

    @torch.no_grad()
    def test(self, inputs, target):
        prediction, _ = self.model(inputs, self.model.start(len(inputs)))
        return F.mse_loss(prediction[:, 20:], target[:, 20:]).item()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    forecast = Forecast()
    test_set = heating(64, 60)
    for record in range(18):
        loss = forecast.train_record(*heating(32, 160))
        if record % 5 == 0:
            print(f"record {record:2d} train {loss:.4f} test {forecast.test(*test_set):.4f}")
    error = forecast.test(*test_set)
    print(f"test mse {error:.4f} of variance {test_set[1][:, 20:].var().item():.4f}")
    return forecast.model, error


if __name__ == "__main__":
    model, error = main()
