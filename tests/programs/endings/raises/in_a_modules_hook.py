# ended with RuntimeError, exit code 1
net = torch.nn.Linear(2, 1)
net.register_forward_hook(lambda *_: torch.ones(2) @ torch.ones(3))
net(x)
