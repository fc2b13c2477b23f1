"""What the host has: CPUs, limits and GPUs, and which of them a trial may use."""
