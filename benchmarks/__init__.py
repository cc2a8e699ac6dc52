"""Benchmarks, run by hand: run a module, commit the table it writes."""
