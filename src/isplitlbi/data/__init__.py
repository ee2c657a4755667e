"""What comes in: files, votes, and where the parameters of users lie."""
