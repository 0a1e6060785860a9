import copy, io, pickle, torch
class Config:
    def __init__(self): self.t = torch.arange(3.0)
    def __eq__(self, other): return torch.equal(self.t, other.t)
print(pickle.loads(pickle.dumps(Config())) == Config(), pickle.dumps(Config()).count(b"__main__"))
net = torch.nn.Linear(2, 2)
twin = copy.deepcopy(net)
print(all(torch.equal(a, b) for a, b in zip(net.parameters(), twin.parameters())))
buffer = io.BytesIO()
torch.save({"net": net.state_dict(), "x": torch.ones(2, requires_grad=True)}, buffer)
buffer.seek(0)
back = torch.load(buffer)
print(sorted(back), back["x"])
x = torch.ones(2, requires_grad=True)
shared = [x, x.detach()]
one, two = copy.deepcopy(shared)
print(one.requires_grad, one.data_ptr() == two.data_ptr())
try:
    copy.deepcopy(x * 2)
except RuntimeError as error:
    print(error)
buffer = io.BytesIO()
torch.save(Config(), buffer)
buffer.seek(0)
try:
    torch.load(buffer)
except pickle.UnpicklingError as error:
    print("refused", "__main__.Config" in str(error))
buffer.seek(0)
print(torch.load(buffer, weights_only=False) == Config())
