"""The papers' experiments on data at hand."""
