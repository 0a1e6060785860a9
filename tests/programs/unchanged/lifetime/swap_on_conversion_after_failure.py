"""Parameters swapped on conversion, after a backward pass that was refused."""
import torch
torch.__future__.set_swap_module_params_on_conversion(True)
m = torch.nn.Linear(2, 3)
inp = torch.randn(2, 2)
out = m(inp)
m.half()
try:
    out.sum().backward()
except RuntimeError as e:
    print("backward refused:", str(e)[:60])
out2 = m(torch.randn(2, 2, dtype=torch.half))
out2.sum().backward()
m.float()
print("converted")
