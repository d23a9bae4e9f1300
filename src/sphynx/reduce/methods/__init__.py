"""One file for each reduction method: which ReLUs stay, and with which weights the training begins."""
