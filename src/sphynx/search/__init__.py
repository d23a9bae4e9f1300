"""Cell search over the Sphynx space and the placement of reduce cells. It knows nothing of protocols or of training."""
