"""Which votes to ask for next, whom, and when to stop.

`open_questions` says what is not known yet of an order, `people` what a vote of somebody would tell
of it, and `asking` chooses a batch of votes, after `thinning` has left out pairs that tell little.
`sides` decides which item stands on the left. `sureness` says how certain an order is, `ahead` how
certain it will be after more votes, and `design` what to ask where there are no votes yet.
"""
