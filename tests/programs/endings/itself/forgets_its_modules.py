# ended with RuntimeError, exit code 1
sys.modules.clear()
torch.ones(2) @ torch.ones(3)
