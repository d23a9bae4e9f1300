"""`sphynx demo`: the whole way, from a data set to private answers, with both parties on this machine."""
