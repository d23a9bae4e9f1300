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

#include <cstdint>

#include "crypto/block.h"

namespace sphynx {

// planes[b * plane_words(count) + ..] = bit b of each block, b < width <= 64.
void low_bit_planes(const Block* blocks, std::size_t count, unsigned width, std::uint64_t* planes);

// out[j * length ..]: `length` blocks of stream 0 under pad j, as expand_seed makes them. threads = 0 takes all cores.
void expand_pads(const Block* pads, std::size_t count, std::size_t length, Block* out, unsigned threads);

// message: 2 * count blocks.
void send_chosen(const Block* m0, const Block* m1, const Block* x0, const Block* x1, std::size_t count,
                 Block* message);
void receive_chosen(const Block* m_r, const std::uint64_t* choices, const Block* message, std::size_t count,
                    Block* out);

// message: packed_bytes(count, width). shares_sender[j] + shares_receiver[j] = r_j x[j] mod 2^width.
void send_products(const Block* m0, const Block* m1, const std::uint64_t* x, std::size_t count,
                   unsigned width, std::uint8_t* message, std::uint64_t* shares);
void receive_products(const Block* m_r, const std::uint64_t* choices, const std::uint8_t* message,
                      std::size_t count, unsigned width, std::uint64_t* shares);

}  // namespace sphynx
