"""What is wrong with these votes, and do individual rankings help."""
