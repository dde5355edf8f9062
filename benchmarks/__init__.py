"""How accurate, fast and large, beside crowd-kit, SciPy and polars: ``python -m benchmarks`` writes BENCHMARKS.md."""
