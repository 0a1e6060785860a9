# ran to its end, exit code 0
# Ctrl-C after: ready
try:
    print('ready', flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    print('caught')
