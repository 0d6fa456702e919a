"""``python -m turngym``: the command line, where its script is not on the path."""

import sys

from .benchmarks.cli.main import main

sys.exit(main())
