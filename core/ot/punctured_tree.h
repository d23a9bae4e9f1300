// GGM trees with one leaf missing, the seeds of SoftSpoken (Roy, eprint 2022/192).
// The OT receiver owns whole trees; the OT sender learns all leaves of a tree but the one at its secret index
// delta. One base OT per level: on choice delta_b the sender gets the sum of the children on the other side.
//
// The sender indexes leaves by y = x xor delta, so that the missing one is always y = 0 and no memory access
// or branch depends on delta.
//
// Children of a node s at the level of bit b are AES_s(salt xor 2 b) and AES_s(salt xor (2 b + 1)). The salt is
// public and differs between trees and sessions: whoever searches for a key of 128 bits then searches for one
// node, and not for any of all the nodes of all the sessions on record at once.
#pragma once

#include <vector>

#include "views.h"

namespace sphynx::ot {

// Leaves x = 0 .. 2^depth - 1 under `root`; level_sums[2 b + c], b < depth, is the sum of all children with bit c at the
// level of bit b of x (the root's children are bit depth - 1).
std::vector<Block> expand_tree(Block root, Block salt, BlockSpan level_sums);

// Leaves y = 1 .. 2^depth - 1 (y = 0 is left zero) from known_sums[b] = level_sums[2 b + (1 xor delta_b)], b < depth.
std::vector<Block> expand_punctured_tree(unsigned delta, Block salt, BlockView known_sums);

}  // namespace sphynx::ot
