// What is made of random OTs: pads m0, m1 at the sender, m_r at the receiver, r its choice bit. No
// interaction but the one message stated; every message goes from the OT sender to the OT receiver.
//
//   form       message               result
//   bits       none                  the low bits of each pad as planes: m_r = m0 xor r a for the random
//                                    offset a = m0 xor m1, so each plane is a batch of shared products
//                                    r * a (masks of tree nodes, Boolean triples)
//   strings    none                  each pad as the seed of a longer one
//   chosen     x0 xor m0, x1 xor m1  the receiver has x_r, one 16-byte string of two
//   products   m0 + x - m1           r * x for the sender's ring element x, shared additively mod 2^width
#pragma once

#include "views.h"

namespace sphynx::ot {

// The first argument tells how many OTs there are, `count`; the others fit it.
using Pads = BlockView;

// planes[b * plane_words(count) + ..] = bit b of each block, b < width <= 64.
void low_bit_planes(Pads pads, unsigned width, WordSpan planes);
// The same for CPUs with vbmi, width <= 8 and whole words of pads; planes are `stride` words apart.
void low_bit_planes_vbmi(Pads pads, unsigned width, std::size_t stride, std::uint64_t* planes);

// out[j * length ..]: `length` blocks of stream 0 under pad j, as expand_seed makes them. threads = 0 takes all cores.
void expand_pads(Pads pads, std::size_t length, BlockSpan out, unsigned threads);

// message: 2 * count blocks.
void send_chosen(Pads m0, Pads m1, BlockView x0, BlockView x1, BlockSpan message);
void receive_chosen(Pads m_r, WordView choices, BlockView message, BlockSpan out);

// message: packed_bytes(count, width). shares_sender[j] + shares_receiver[j] = r_j x[j] mod 2^width.
void send_products(Pads m0, Pads m1, WordView x, unsigned width, ByteSpan message, WordSpan shares);
void receive_products(Pads m_r, WordView choices, ByteView message, unsigned width, WordSpan shares);

}  // namespace sphynx::ot
