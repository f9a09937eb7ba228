"""Operations that order values: sorting, quantiles, sets, histograms."""
