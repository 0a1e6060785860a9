import sys, threading, torch
print(len(threading.enumerate()), sys.flags.interactive, sys.excepthook is sys.__excepthook__ or "hook", sys.unraisablehook.__name__)
print(torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.get_num_threads() > 0)
x = torch.ones(1, requires_grad=True)
print(x._backward_hooks, vars(x), (x * 2).grad_fn.metadata, x.__dict__)
print(sorted(vars(torch.nn.Linear(1, 1))))
print("tensorlens" in str(torch.nn.Parameter), repr(torch.autograd.Function.apply)[:20])
