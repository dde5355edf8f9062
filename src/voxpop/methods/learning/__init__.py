"""Classifiers learned from the votes, a short file a paper: names for combinations of channel, network and engine."""
