"""Questions about values that differ from step to step: both ways are recorded, and joined."""
