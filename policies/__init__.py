"""Policies: everything that chooses actions. One file and one entry point each."""
