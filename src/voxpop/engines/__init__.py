"""How channel and prior are found together."""
