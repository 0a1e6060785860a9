# ran to its end, exit code 0
# gap: a process was started to run `python -c 'import os; os._exit(3)'`: what runs in it is not traced
import subprocess
print(subprocess.run([sys.executable, '-c', 'import os; os._exit(3)']).returncode)
