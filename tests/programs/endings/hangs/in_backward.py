# was stopped at its time limit by SIGTERM
# --timeout 12
z = x * 1
z.register_hook(lambda g: time.sleep(60))
z.sum().backward()
