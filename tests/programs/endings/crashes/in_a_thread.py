# was killed by SIGSEGV
time.sleep(1)
thread = threading.Thread(target=lambda: ctypes.string_at(0))
thread.start(); thread.join()
