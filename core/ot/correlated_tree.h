// Trees of silent OT (silent.h): all nodes of a level sum up to the sender's offset delta (Guo, Yang, Wang, Zhang, Xie,
// Liu and Zhao, eprint 2022/1431), so a receiver that lacks one leaf has that leaf xor delta as the sum of the others.
//
//   level 1            s, s xor delta, with s drawn by the sender
//   children of x      H(x), x xor H(x), H of hash.h with tweak 0 under a public key of the batch
//   level sums         K_l, the sum of all left children of level l; that of the right ones is K_l xor delta
//   receiver's         K_l xor b_l delta for one bit b_l a level, its missing leaf on the other side: bit l of that
//                      leaf's index, the highest first, is 1 - b_l
//   leaves             v_x at the sender, w_x at the receiver: w_x = v_x but for the missing one, w = v xor delta. The
//                      lowest bit of all v_x is 0, so that of w_x says which one is missing
//
// One AES call a leaf. A node on the missing path is the sum of the others of its level, xor delta: the receiver sees H
// on inputs that differ from what it knows by delta, the inputs drawn by the sender, and chooses none of them.
//
// The missing index is secret: the receiver's tree has a zero at the missing path, hashed as all nodes are, and
// corrects it by a mask at every node. No branch or address depends on the index.
#pragma once

#include "crypto/aes.h"
#include "views.h"

namespace sphynx::ot {

// left_sums: K_1 .. K_depth, whose number is the depth; leaves: 2^depth.
void expand_correlated_tree(const crypto::AesKey& key, Block s, Block delta, BlockSpan leaves,
                            BlockSpan left_sums);

// known_sums[l - 1] = K_l xor b_l delta.
void expand_without(std::uint64_t missing, const crypto::AesKey& key, BlockView known_sums, BlockSpan leaves);

}  // namespace sphynx::ot
