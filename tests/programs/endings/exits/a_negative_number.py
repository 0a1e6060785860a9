# ended itself, exit code 255
sys.exit(-1)
