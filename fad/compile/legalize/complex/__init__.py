"""Complex arithmetic as real arithmetic."""
