import torch
def inner():
    try:
        torch.ones(2) @ torch.ones(3)
    except RuntimeError as error:
        error.add_note("shapes of layer 3")
        raise ValueError("bad shapes") from error
try:
    inner()
except ValueError:
    torch.ones(1).backward()
