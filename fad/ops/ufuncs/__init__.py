"""Operations on each element by itself: NumPy's ufuncs, choices, predicates, conversions."""
