# was interrupted, exit code 130
# Ctrl-C after: ready
print('ready', flush=True)
thread = threading.Thread(target=time.sleep, args=(60,), daemon=True)
thread.start()
thread.join()
