import atexit, sys, torch
atexit.register(print, "first registered, last run")
atexit.register(lambda: print("sum", torch.ones(2).sum()))
class Thing:
    def __del__(self):
        print("deleted", self.t.sum().item())
thing = Thing()
thing.t = torch.ones(2)
del thing
sys.exit("goodbye")
