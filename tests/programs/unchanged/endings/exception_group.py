import torch
x = torch.ones(2)
errors = []
for n in (3, 4):
    try:
        x @ torch.ones(n)
    except RuntimeError as error:
        errors.append(error)
raise ExceptionGroup("two of them", errors)
