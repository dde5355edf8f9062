"""A labelling loop that a team runs: ask, tell, ask again. Its whole state is one directory."""
