#include "ot/forms.h"

#include <algorithm>
#include <vector>

#include "bits/pack.h"
#include "bits/transpose.h"
#include "cpu.h"
#include "crypto/prg.h"
#include "threads.h"

namespace sphynx::ot {
namespace {

std::uint64_t choice_mask(WordView choices, std::size_t j) {
    return -(choices[j / 64] >> (j % 64) & 1);
}

}  // namespace

void low_bit_planes(Pads pads, unsigned width, WordSpan planes) {
    const std::size_t count = pads.size(), words = bits::plane_words(count);
    std::uint64_t low[64], bits[64];
    std::size_t word = 0;
#if defined(__x86_64__)
    if (width <= 8 && usable_features().vbmi) {
        word = count / 64;
        low_bit_planes_vbmi(pads.first(64 * word), width, words, planes.data());
    }
#endif
    for (; word < words; ++word) {
        const Block* from = pads.data() + 64 * word;
        const std::size_t used = std::min<std::size_t>(64, count - 64 * word);
        if (width <= 4) {  // few bits: cheaper to pick than to transpose
            for (unsigned bit = 0; bit < width; ++bit) {
                std::uint64_t plane = 0;
                for (std::size_t j = 0; j < used; ++j) plane |= (from[j].lo >> bit & 1) << j;
                planes[bit * words + word] = plane;
            }
        } else {
            for (std::size_t j = 0; j < used; ++j) low[j] = from[j].lo;
            bits::bits_of_word(low, used, 0, width, bits);
            for (unsigned bit = 0; bit < width; ++bit) planes[bit * words + word] = bits[bit];
        }
    }
    zeroise(low, sizeof low);
    zeroise(bits, sizeof bits);
}

void expand_pads(Pads pads, std::size_t length, BlockSpan out, unsigned threads) {
    constexpr std::size_t of_key = 64;  // blocks that take as long as a key's schedule
    const std::size_t grain = std::max<std::size_t>(1, crypto::kSeedGrain / (length + of_key));
    parallel_ranges(pads.size(), grain, threads, [&](std::size_t begin, std::size_t end) {
        for (std::size_t j = begin; j < end; ++j)
            crypto::expand_seed(crypto::AesKey(pads[j]), 0, 0, out.data() + j * length, length);
    });
}

void send_chosen(Pads m0, Pads m1, BlockView x0, BlockView x1, BlockSpan message) {
    for (std::size_t j = 0; j < m0.size(); ++j) {
        message[2 * j] = x0[j] ^ m0[j];
        message[2 * j + 1] = x1[j] ^ m1[j];
    }
}

void receive_chosen(Pads m_r, WordView choices, BlockView message, BlockSpan out) {
    for (std::size_t j = 0; j < m_r.size(); ++j) {
        const Block difference = message[2 * j] ^ message[2 * j + 1];
        out[j] = m_r[j] ^ message[2 * j] ^ (mask_of(choice_mask(choices, j)) & difference);
    }
}

void send_products(Pads m0, Pads m1, WordView x, unsigned width, ByteSpan message, WordSpan shares) {
    const std::size_t count = m0.size();
    const std::uint64_t ring = ~std::uint64_t{0} >> (64 - width);
    std::vector<std::uint64_t> corrections(count);
    for (std::size_t j = 0; j < count; ++j) {
        corrections[j] = m0[j].lo + x[j] - m1[j].lo;
        shares[j] = -m0[j].lo & ring;
    }
    bits::pack_ring(corrections.data(), count, width, message.data());
}

void receive_products(Pads m_r, WordView choices, ByteView message, unsigned width, WordSpan shares) {
    const std::size_t count = m_r.size();
    const std::uint64_t ring = ~std::uint64_t{0} >> (64 - width);
    bits::unpack_ring(message.data(), count, width, shares.data());
    for (std::size_t j = 0; j < count; ++j) {
        shares[j] = (m_r[j].lo + (choice_mask(choices, j) & shares[j])) & ring;
    }
}

}  // namespace sphynx::ot
