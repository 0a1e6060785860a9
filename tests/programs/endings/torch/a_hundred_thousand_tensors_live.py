# ran to its end, exit code 0
held = [torch.ones(1) for _ in range(100_000)]
print(len(held))
