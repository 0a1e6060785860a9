# was interrupted, exit code 130
# Ctrl-C after: ready
print('ready', flush=True)
torch.rand(12_000_000).sort()
time.sleep(60)
