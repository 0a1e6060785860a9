# ended with RuntimeError, exit code 1
torch.ones(2) @ torch.ones(3)
