# was interrupted, exit code 130
# Ctrl-C after: ready, cleaning
print('ready', flush=True)
try:
    time.sleep(60)
finally:
    print('cleaning', flush=True)
    time.sleep(60)
