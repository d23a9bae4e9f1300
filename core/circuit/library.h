// The circuits that the project itself uses or tests with.
#pragma once

#include "circuit/circuit.h"

namespace sphynx::circuit {

// ReLU with exact truncation on additive shares (DELPHI's step over Z_2^k instead of a prime field).
// Inputs: x_s (w bits, garbler), x_c (w bits, evaluator), r (k bits, evaluator). With x = x_s + x_c mod 2^w
// read as signed: output = (max(x, 0) >> f) - r mod 2^k. Needs 2 <= w <= k <= 64 and f <= w - 2. ANDs: (w-1)
// to add, (w-1-f) to select, (k-1) to subtract.
Circuit relu_circuit(unsigned w, unsigned k, unsigned f);

// Signed truncation on additive shares: the same inputs; output = (x >> f) - r mod 2^k, x >> f rounded down. Needs
// 2 <= w <= k <= 64 and f < w. ANDs: (w-1) to add, (k-1) to subtract.
Circuit floor_circuit(unsigned w, unsigned k, unsigned f);

// Which of `classes` scores is the largest, the first of them where several are. Inputs: the scores' additive shares,
// w bits each (garbler), then the same of the evaluator; the sums mod 2^w are read as signed. Outputs: its number, in as
// many bits as the last one has; with a margin > 0 also whether it leads the second largest by that much or more. Needs
// 2 <= classes <= 2^12, 1 <= w <= 63, margin < 2^w. ANDs: classes (w-1) to add, then for each further class w to compare
// and w to select (no selection behind the last), for the j-th of them bit_width(j - 1) for its number. With a margin
// all are selected, the third and later ones compare and select once more for the second largest, and w-1 subtract and
// w-1-countr_zero(margin) compare.
Circuit label_circuit(unsigned classes, unsigned w, std::uint64_t margin);

// a + b mod 2^width, two inputs, one output.
Circuit adder_circuit(unsigned width);

// AES-128 encryption; inputs key and plaintext, output ciphertext, bit 8 i + j is bit j of byte i. 7,200
// ANDs.
Circuit aes128_circuit();

}  // namespace sphynx::circuit
