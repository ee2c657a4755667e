"""Whether users fall into camps: which want the same, and how many there are.

`ballots` has the votes without what is no matter of taste, `told` what they tell of every user's
scores, `mixture` fits camps to that, `predicted` says what camps predict, and `choice` how many of
them there are.
"""
