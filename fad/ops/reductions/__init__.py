"""Operations along axes: sums, products, extremes, norms, scans, statistics."""
