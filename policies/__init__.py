"""Policies: whatever chooses actions. One file each, one entry point each."""
