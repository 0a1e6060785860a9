# was killed by SIGABRT
time.sleep(1)
y.register_hook(lambda g: os.abort())
y.sum().backward()
