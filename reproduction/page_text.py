"""The words at the top of docs/results/paper.md: what it shows, how verdicts are made, and which rules came late."""

from reproduction.deviation import LEVEL
from reproduction.verdicts.grids import LEAST_DEPTHS
from reproduction.verdicts.levels import LEAST_EPOCHS

INTRODUCTION = """# The paper beside ours

Every experiment of *Sphynx: ReLU-Efficient Network Design for Private Inference*: what the paper prints, what our kept
runs (`results/`) gave for the same network, and a verdict. `make docs` writes this page,
`python -m reproduction run NAME` runs what is missing, and `python -m reproduction keep RUN` adds a run to it.

Accuracies are of the test images at the final epoch, in percent; n is the number of seeds. The paper's are means of
three seeds where they have a deviation. Its code reports the best test epoch, which stands beside ours where it was
recorded. The paper trains in fp32, ours are by bf16 autocast with fp32 weights ([arithmetic](#arithmetic): what that is
worth). Most of ours are shorter than the paper's 600 epochs: the column "setting" says how long,
[settings](#settings) what else differs, and [runs](#runs) what was not run and would take how many minutes.
"""

RULES = f"""## how verdicts are made

[rules.md](rules.md) was committed before the runs that it names.

- **Pairs.** A network is compared with another by the mean of n seeds beside that of m, trained by equal settings. The
  claim is *reproduced* where every gain is at least the smallest difference that its seeds show (two-sided t-test at
  {LEVEL:.0%}: "n=8 and 6 show 0.37"), *not reproduced* where one network loses by as much, and *undecided* otherwise. A
  claim about several sizes is judged by those that were trained, whose number is said. The deviation between seeds is
  "of all settings" where no network was trained twice by those that were compared.
- **Early places.** Placements that reduce first at 0 or 1 against the others, mean against mean within a grid, n and m
  being numbers of placements.
- **Algorithm 1.** A search counts in the released form with tau from 1000, as the paper prints it, and beside a grid
  of which every placement was trained by equal settings. It finds the best one where what it takes is not shown to be
  worse, or is the paper's choice. One in doubt decides nothing. *Reproduced* needs {LEAST_DEPTHS} depths. Searches with
  rivals by probability, which are ours, are judged apart by the same rule.
- **Equally good.** The range of the accuracies is smaller than the smallest difference; *not reproduced* where it is
  twice that. Before {LEAST_EPOCHS} epochs it measures how fast networks learn: *undecided*.
- **Accuracies** as printed: runs in the paper's own setting, or with batch 512, by their best test epoch.
- **What decides nothing.** Random cells, unless all that are listed were trained; cells of our own search that stand
  for the paper's and lose; searches of our own, or students, of which some win and others lose. The paper states two
  losses for distillation, a sum of squares in its formula and their mean in its text: a student by either counts.
- *Not run* says that nothing here bears on the claim. Experiments marked as ours ask what the paper does not claim.

The tables show runs in the paper's own setting, by its batch or 512, or in one that another row has too, and where
there are none, the nearest to the paper's. All others: `python -m reproduction run NAME --no-run --results results`.
"""

LATE_RULES = f"""## rules made after results

These were made when results that they judge had been seen. All but the last turned a verdict into *undecided*.

- Random cells count when all that are listed were trained. Before, one, 1.84 points below the published cells, made
  *random-cells* reproduced.
- A placement search in doubt decides nothing. Before, *placement-grid* was not reproduced.
- Placement searches with tau from 10, the released code's default, no longer count, whether beta waited or not. They
  took (1,3), (0,3) and (1,4) at D=5, 6 and 8, and (1,2) and (0,1) at D=5 and 6 where beta waited. Before,
  *placement-grid* was not reproduced.
- Cells of our own search that stand for the paper's and lose decide nothing. Before, *nodes* was reproduced: the search
  for N=5 left one convolution.
- Searches that disagree decide nothing. Before, *search* was not reproduced, by a supernet of C=16, the released code's
  default; the paper prints 5.
- Accuracies are read at the best test epoch. The one run in the paper's own setting is 0.66 points below the paper by
  that reading, 1.06 by its last epoch.
- *channels-depth* needs {LEAST_EPOCHS} epochs. Before, it was not reproduced, by 30.
- *early-places* was taken out of *placement-grid* when the grids of D=5 and D=6 were known, before that of D=8 was.

The smallest difference took the place of a constant 0.7 before the runs of [rules.md](rules.md) and after the others,
of which it changed no verdict. The rule on students was made before those of a teacher of 200 epochs were seen: the
mean gains, the sum, of which alone there had been a student, does not.
"""
