# ran to its end, exit code 0
class Dies:
    def __del__(self): torch.ones(2) @ torch.ones(3)
thing = Dies()
del thing
