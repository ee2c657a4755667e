"""Simulated votes, and the paper's protocol on any votes."""
