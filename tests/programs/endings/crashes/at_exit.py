# was killed by SIGSEGV
import atexit
atexit.register(ctypes.string_at, 0)
