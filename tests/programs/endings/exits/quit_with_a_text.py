# ended itself, exit code 1
quit('goodbye')
