import gc, weakref, torch
gc.disable()
def alive():
    return sum(issubclass(type(o), torch.Tensor) for o in gc.get_objects())
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(inplace=True), torch.nn.Linear(8, 2))
optimizer = torch.optim.AdamW(net.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
counts, left = [], []
for step in range(6):
    x = torch.randn(4, 8)
    hidden = net[:3](x)
    out = net[3](hidden)
    loss = torch.nn.functional.cross_entropy(out, torch.tensor([0, 1, 0, 1]))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    watched = [weakref.ref(t) for t in (x, hidden, out, loss, *(p.grad for p in net.parameters()))]
    nodes = [weakref.ref(loss.grad_fn), weakref.ref(out.grad_fn)] if hasattr(loss.grad_fn, "__weakref__") else []
    del x, hidden, out, loss
    optimizer.zero_grad()
    left.append(sum(ref() is not None for ref in watched + nodes))
    counts.append(alive())
print(left, len(set(counts[1:])), gc.collect())
state = [weakref.ref(t) for s in optimizer.state.values() for t in s.values() if isinstance(t, torch.Tensor)]
parameters = [weakref.ref(p) for p in net.parameters()]
del optimizer, scheduler
gc.collect()
print(sum(ref() is not None for ref in state))
del net
gc.collect()
print(sum(ref() is not None for ref in parameters), alive())
