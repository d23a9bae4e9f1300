#include "ot/forms.h"

#include <algorithm>
#include <vector>

#include "bits/pack.h"
#include "bits/transpose.h"
#include "crypto/prg.h"
#include "threads.h"

namespace sphynx {
namespace {

std::uint64_t choice_mask(const std::uint64_t* choices, std::size_t j) {
    return -(choices[j / 64] >> (j % 64) & 1);
}

}  // namespace

void low_bit_planes(const Block* blocks, std::size_t count, unsigned width, std::uint64_t* planes) {
    const std::size_t words = plane_words(count);
    std::uint64_t low[64], bits[64];
    for (std::size_t word = 0; word < words; ++word) {
        const Block* from = blocks + 64 * word;
        const std::size_t used = std::min<std::size_t>(64, count - 64 * word);
        if (width <= 4) {  // few bits: cheaper to pick than to transpose
            for (unsigned bit = 0; bit < width; ++bit) {
                std::uint64_t plane = 0;
                for (std::size_t j = 0; j < used; ++j) plane |= (from[j].lo >> bit & 1) << j;
                planes[bit * words + word] = plane;
            }
        } else {
            for (std::size_t j = 0; j < used; ++j) low[j] = from[j].lo;
            bits_of_word(low, used, 0, width, bits);
            for (unsigned bit = 0; bit < width; ++bit) planes[bit * words + word] = bits[bit];
        }
    }
    zeroise(low, sizeof low);
    zeroise(bits, sizeof bits);
}

void expand_pads(const Block* pads, std::size_t count, std::size_t length, Block* out, unsigned threads) {
    constexpr std::size_t of_key = 64;  // blocks that take as long as a key's schedule
    const std::size_t grain = std::max<std::size_t>(1, kSeedGrain / (length + of_key));
    parallel_ranges(count, grain, threads, [&](std::size_t begin, std::size_t end) {
        for (std::size_t j = begin; j < end; ++j)
            expand_seed(AesKey(pads[j]), 0, 0, out + j * length, length);
    });
}

void send_chosen(const Block* m0, const Block* m1, const Block* x0, const Block* x1, std::size_t count,
                 Block* message) {
    for (std::size_t j = 0; j < count; ++j) {
        message[2 * j] = x0[j] ^ m0[j];
        message[2 * j + 1] = x1[j] ^ m1[j];
    }
}

void receive_chosen(const Block* m_r, const std::uint64_t* choices, const Block* message, std::size_t count,
                    Block* out) {
    for (std::size_t j = 0; j < count; ++j) {
        const Block difference = message[2 * j] ^ message[2 * j + 1];
        out[j] = m_r[j] ^ message[2 * j] ^ (mask_of(choice_mask(choices, j)) & difference);
    }
}

void send_products(const Block* m0, const Block* m1, const std::uint64_t* x, std::size_t count,
                   unsigned width, std::uint8_t* message, std::uint64_t* shares) {
    const std::uint64_t ring = ~std::uint64_t{0} >> (64 - width);
    std::vector<std::uint64_t> corrections(count);
    for (std::size_t j = 0; j < count; ++j) {
        corrections[j] = m0[j].lo + x[j] - m1[j].lo;
        shares[j] = -m0[j].lo & ring;
    }
    pack_ring(corrections.data(), count, width, message);
}

void receive_products(const Block* m_r, const std::uint64_t* choices, const std::uint8_t* message,
                      std::size_t count, unsigned width, std::uint64_t* shares) {
    const std::uint64_t ring = ~std::uint64_t{0} >> (64 - width);
    unpack_ring(message, count, width, shares);
    for (std::size_t j = 0; j < count; ++j) {
        shares[j] = (m_r[j].lo + (choice_mask(choices, j) & shares[j])) & ring;
    }
}

}  // namespace sphynx
