"""The model: links, parameters, rankings, and how good predictions are."""
