// Half-gates garbling (Zahur, Rosulek, Evans, eprint 2014/756): 2 blocks per AND, XOR and NOT free, colours
// by point-and-permute; many instances of one circuit at once.
//
//   wire labels    W0, W1 = W0 xor delta; delta's lowest bit is 1, so a label's lowest bit is its colour
//   AND gate g     tables[g][0] = H(A0) + H(A1) + colour(B0) delta,  tables[g][1] = H(B0) + H(B1) + A0
//   hash           H of hash.h with gate key AES_R(g) and tweaks 2 i R, (2 i + 1) R for instance i (tweaks.h)
//
// R is public, drawn by the garbler for each (bundle, layer) after the evaluator's input labels are fixed: labels from
// OT depend on seeds that the evaluator chose, and could be made to fit tweaks that it knew (hash.h). Labels are [wire][instance]. Tables come in
// chunks of 64 instances (the last may be shorter), each chunk [AND][2][instance]: they are written, sent and
// read in one pass. Outputs leave as colour bits: the evaluator's xor the garbler's is the value; neither
// side hands out labels of outputs or decoding information (an evaluator may hash the halves of its own). Gates of constant (public) outputs leak nothing.
#pragma once

#include "garble/plan.h"
#include "views.h"

namespace sphynx::garble {

struct GarbleBatch {
    Block late_tweak;                  // R
    std::uint64_t first_instance = 0;  // tweaks continue here when a layer is garbled in several batches
    std::size_t instances = 0;
    unsigned threads = 1;  // 0: all cores
};

// What comes out: colours[outputs][plane_words(n)] and, where there is memory for them, halves[outputs][n], the upper
// words of the labels (of the zero labels for the garbler). An evaluator that knows the halves of a colour holds that
// colour.
struct GarbledOutputs {
    WordSpan colours;
    WordSpan halves = {};
};

// input_zeros[inputs][n], 2 * ands * n blocks of tables.
void garble(const Plan& plan, const GarbleBatch& batch, Block delta, BlockView input_zeros, BlockSpan tables,
            const GarbledOutputs& outputs);

// input_labels[inputs][n]; the same tables.
void evaluate(const Plan& plan, const GarbleBatch& batch, BlockView input_labels, BlockView tables,
              const GarbledOutputs& outputs);

// labels[row][j] = zeros[row][j] xor bit * delta, the bits as planes[row][plane_words(n)].
void encode_labels(Block delta, BlockView zeros, WordView planes, std::size_t instances, BlockSpan labels,
                   unsigned threads);

}  // namespace sphynx::garble
