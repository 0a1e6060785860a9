# ran to its end, exit code 0
import subprocess
print(subprocess.run(['sh', '-c', 'exit 3']).returncode)
