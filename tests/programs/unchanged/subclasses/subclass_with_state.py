import copy, pickle, torch
class Named(torch.Tensor):
    def __new__(cls, data, name=""):
        made = torch.as_tensor(data).as_subclass(cls)
        made.name_ = name
        return made
a = Named([1.0, 2.0], "weights")
b = copy.deepcopy(a)
print(b.name_, type(b).__name__, torch.equal(a, b))
print(torch.nn.Parameter(a).__class__.__name__, isinstance(torch.nn.Parameter(a), torch.nn.Parameter))
c = pickle.loads(pickle.dumps(a))
print(type(c).__name__, c.name_)
