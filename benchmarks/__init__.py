"""Speed and memory against named rivals: `python -m benchmarks --help`."""
