"""Operations that arrange elements and leave their values: reshape, join, split, pad."""
