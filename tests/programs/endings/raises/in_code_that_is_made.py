# ended with RuntimeError, exit code 1
exec(compile("def f():\n    torch.ones(2) @ torch.ones(3)\n", "made up", "exec"))
f()
