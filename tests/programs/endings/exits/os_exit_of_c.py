# ended itself, exit code 2
# gap: the program closed the journal
time.sleep(1)
ctypes.CDLL(None)._exit(2)
