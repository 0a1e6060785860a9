# was interrupted, exit code 130
# Ctrl-C after: ready
print('ready', flush=True)
time.sleep(60)
