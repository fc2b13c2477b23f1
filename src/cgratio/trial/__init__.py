"""One measured launch of one point: place, sample, run the workload, cut windows, give the verdict."""
