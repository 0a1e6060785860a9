# was interrupted, exit code 130
# Ctrl-C after: ready
print('ready', flush=True)
z = x * 1
z.register_hook(lambda g: time.sleep(60))
z.sum().backward()
