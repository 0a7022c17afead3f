"""Queue orders: which waiting job comes first."""
