# was killed by SIGABRT
time.sleep(1)
sys.stderr.close()
os.close(2)
ctypes.pythonapi.Py_FatalError(b'made up')
