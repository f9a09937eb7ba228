"""The graph behind tensors: records, views, changes in place, and the backward pass."""
