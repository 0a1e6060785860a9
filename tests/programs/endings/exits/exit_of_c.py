# ended itself, exit code 4
# gap: the program closed the journal
time.sleep(1)
ctypes.CDLL(None).exit(4)
