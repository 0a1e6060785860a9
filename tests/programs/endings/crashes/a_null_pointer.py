# was killed by SIGSEGV
time.sleep(1)
ctypes.string_at(0)
