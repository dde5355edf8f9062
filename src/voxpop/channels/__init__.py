"""What an annotator does to the truth."""
