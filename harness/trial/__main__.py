"""``python -m harness.trial FD``: a zygote that takes orders on the socket with that file descriptor."""

import sys

from harness.trial.zygote import serve

if __name__ == "__main__":
    sys.exit(serve(int(sys.argv[1])))
