"""voxpop: what is true, how sure is it, and who can be trusted, when those who label disagree."""
