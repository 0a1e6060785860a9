# ended with RuntimeError, exit code 1
os.remove(__file__)
os.symlink('/dev/null', __file__)
torch.ones(2) @ torch.ones(3)
