# ended with RuntimeError, exit code 1
sys.stdout = None
print('unseen')
torch.ones(2) @ torch.ones(3)
