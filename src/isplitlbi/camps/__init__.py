"""Whether users fall into camps: which want the same, and how many there are."""
