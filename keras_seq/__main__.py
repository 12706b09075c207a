"""`python -m keras_seq` is `keras-seq`."""

import sys

from keras_seq_cli.main import main

if __name__ == "__main__":
    sys.exit(main())
