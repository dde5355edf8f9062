"""Segment sums, stable logs, the simplex, Dirichlet functions and seeds. Everything numeric starts here."""
