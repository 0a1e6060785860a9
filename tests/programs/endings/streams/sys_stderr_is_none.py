# ended with RuntimeError, exit code 1
sys.stderr = None
torch.ones(2) @ torch.ones(3)
