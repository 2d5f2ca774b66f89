"""The benchmarks: `./dev bench [NAME ...]`, or `python -m bench [NAME ...]` from the root of the repository."""
