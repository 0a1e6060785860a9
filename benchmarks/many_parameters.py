"""Trains PARAMETERS parameters for ITERATIONS iterations, each with a name of 200 characters, for `page_sizes.py`."""

import sys

import torch

PARAMETERS, ITERATIONS = int(sys.argv[1]), int(sys.argv[2])
NAME = "a_name_that_is_far_too_long_for_a_line_of_a_page_" * 4


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        for number in range(PARAMETERS):
            name = f"{NAME}_{number:04}"[-200:]
            self.register_parameter(name, torch.nn.Parameter(torch.ones(2)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for parameter in self.parameters():
            x = x + parameter
        return x.sum()


model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(ITERATIONS):
    optimizer.zero_grad()
    loss = model(torch.ones(2))
    loss.backward()
    optimizer.step()
