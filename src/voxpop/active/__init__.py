"""What to ask next, and whom: what a vote is worth, who is likely to be right, and the best pairs of the two."""
