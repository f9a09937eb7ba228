"""What functions find outside of their arguments: traced values, arrays that change, names that loops rebind."""
