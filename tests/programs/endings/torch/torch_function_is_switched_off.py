# ran to its end, exit code 0
with torch._C.DisableTorchFunction():
    print((x * 3).sum().item())
