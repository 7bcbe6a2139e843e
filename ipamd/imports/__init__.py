"""Reads what other IPAM plugins keep, and makes one neutral plan of it: pools, and who holds which address. Pure."""
