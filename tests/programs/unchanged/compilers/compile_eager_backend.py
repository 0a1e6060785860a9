import torch
seen = []
def backend(graph, inputs):
    seen.append(len(graph.graph.nodes))
    return graph.forward
@torch.compile(backend=backend)
def f(x):
    return (x * 2).sin()
x = torch.ones(2, requires_grad=True)
f(x).sum().backward()
print(x.grad, seen)
net = torch.compile(torch.nn.Linear(2, 1), backend="eager")
print(net(torch.zeros(2)).shape, sorted(net.state_dict()))
net2 = torch.nn.Linear(2, 1)
net2.compile(backend="eager")
print(net2(torch.zeros(2)).shape)
print(torch.compiler.is_compiling())
