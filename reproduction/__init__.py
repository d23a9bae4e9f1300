"""The paper's experiments, tables and verdicts beside our kept runs. For a clone: nothing that is installed imports it.

python -m reproduction run NAME        an experiment, its values beside the paper's
python -m reproduction keep RUN        a finished run, as a file under results/
python -m reproduction page            docs/results/paper.md
python -m reproduction.gpu --list      all runs, for windows of a GPU's time
"""

import time

STARTED = time.monotonic()  # the minutes of a call include what importing takes
