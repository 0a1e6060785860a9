# ended itself, exit code 3
import atexit
atexit.register(os._exit, 3)
