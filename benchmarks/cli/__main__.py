"""``python -m turngym.benchmarks.cli``, as torchrun starts it."""

import sys

from .main import main

sys.exit(main())
