# ended with RuntimeError, exit code 1
os.chdir('/')
torch.ones(2) @ torch.ones(3)
