import torch
with torch.device("meta"):
    print(torch.ones(2).device, torch.nn.Linear(2, 2).weight.device)
torch.set_default_dtype(torch.float64)
print(torch.ones(1).dtype, torch.tensor(1.5).dtype)
torch.set_default_device("meta")
print(torch.ones(1).device)
torch.set_default_device("cpu")
print(torch.ones(1).device)
