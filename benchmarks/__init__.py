"""How accurate, how fast and how large, beside crowd-kit, SciPy and polars: ``python -m benchmarks`` writes BENCHMARKS.md."""
