"""The paper's experiments as a list of runs, and a queue that spreads them over windows of a GPU's time.

Importing it comes before torch: a pool of threads in the queue's process would not survive its forks.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
