"""Homework 3, problem 2: the adding problem with a vanilla RNN.

Each sequence has two channels: uniform numbers and a mask that marks two of them. The target is the sum of the two
marked numbers. Guessing the mean gives an MSE of about 0.167.
"""
import numpy as np
import torch
import torch.nn as nn

SEED = 7
SEQ_LEN = 24
BATCH = 64
STEPS = 600
HIDDEN = 48
LR = 0.06
MAX_NORM = 0.5


def make_batch(rng, n, length):
    values = rng.random((n, length), dtype=np.float32)
    marks = np.zeros((n, length), dtype=np.float32)
    half = length // 2
    rows = np.arange(n)
    first = rng.integers(0, half, n)
    second = rng.integers(half, length, n)
    marks[rows, first] = 1.0
    marks[rows, second] = 1.0
    target = (values * marks).sum(1, keepdims=True)
    x = np.stack([values, marks], axis=2)
    return torch.from_numpy(x), torch.from_numpy(target)


class AddingRNN(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.cell = nn.RNN(2, hidden, nonlinearity="relu", batch_first=True)
        self.readout = nn.Linear(hidden, 1)
        self.reset_parameters()

    def reset_parameters(self):
        # IRNN initialisation (Le, Jaitly, Hinton 2015): identity recurrence, small input weights
        with torch.no_grad():
            self.cell.weight_hh_l0.copy_(torch.eye(self.cell.hidden_size))
            self.cell.weight_ih_l0.normal_(0, 0.05)
            self.cell.bias_ih_l0.zero_()
            self.cell.bias_hh_l0.zero_()
        # the two biases of a cell are redundant, keep only one of them trainable
        self.cell.bias_hh_l0.requires_grad_(False)

    def forward(self, x):
        _, h = self.cell(x)
        return self.readout(h[-1])


def build_optimizer(params, lr):
    return torch.optim.SGD(params, lr=lr, momentum=0.9)


@torch.no_grad()
def evaluate(model, x, y):
    model.eval()
    loss = nn.functional.mse_loss(model(x), y).item()
    model.train()
    return loss


def main():
    torch.manual_seed(SEED)
    rng = np.random.default_rng(SEED)

    model = AddingRNN(HIDDEN)
    trainable = filter(lambda p: p.requires_grad, model.parameters())
    optimizer = build_optimizer(trainable, LR)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=400, gamma=0.5)

    x_test, y_test = make_batch(rng, 512, SEQ_LEN)
    running = None
    history = []
    for step in range(1, STEPS + 1):
        x, y = make_batch(rng, BATCH, SEQ_LEN)
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(trainable, MAX_NORM)
        optimizer.step()
        scheduler.step()
        running = loss.item() if running is None else 0.95 * running + 0.05 * loss.item()
        if step % 150 == 0:
            test = evaluate(model, x_test, y_test)
            history.append(test)
            print(f"step {step:4d}  train mse {running:.4f}  test mse {test:.4f}")

    print(f"final test mse {history[-1]:.4f} (mean predictor {y_test.var().item():.4f})")
    return history


if __name__ == "__main__":
    history = main()
