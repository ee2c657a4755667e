"""Who does the work: this machine's threads, or the workers of a cluster."""
