"""One short file a paper: names for combinations of channel, prior and engine."""
