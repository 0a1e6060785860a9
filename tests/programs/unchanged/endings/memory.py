import torch
try:
    torch.empty(1 << 60)
except RuntimeError as error:
    print(str(error)[:60])
raise MemoryError("made up")
