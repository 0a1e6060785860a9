# ended with BaseException, exit code 1
raise BaseException('odd')
