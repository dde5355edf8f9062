"""Networks that learn from the votes themselves: features, presets, the training loop, what is held out."""
