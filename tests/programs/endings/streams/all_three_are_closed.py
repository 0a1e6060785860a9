# ended with RuntimeError, exit code 1
os.close(0); os.close(1); os.close(2)
torch.ones(2) @ torch.ones(3)
